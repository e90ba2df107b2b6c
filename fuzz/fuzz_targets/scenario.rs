//! Any text is a scenario or one line that says where it is not, the same each time.
//!
//! Lines that begin with `#set ` are taken for `--set` on the command line; to the scenario they are comments.
#![no_main]

use std::path::Path;

use hopcast_runner::load_text;
use hopcast_twin::scenario::{Diagnostic, Overrides, describe};
use libfuzzer_sys::{Corpus, fuzz_target};

/// As if it stood beside the shipped scenarios, whose files it may name.
const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/any.yaml");

fuzz_target!(|data: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(data) else { return Corpus::Reject };
    if asks_for_much(text) {
        return Corpus::Reject;
    }
    let sets: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("#set ")).map(str::to_owned).collect();
    for quick in [false, true] {
        let overrides = Overrides { sets: sets.clone(), quick, ..Overrides::default() };
        let once = load(text, &overrides);
        assert_eq!(once, load(text, &overrides));
        if let Err(error) = once {
            in_place(&error, text);
        }
    }
    Corpus::Keep
});

/// The description of what the text says.
fn load(text: &str, overrides: &Overrides) -> Result<String, Diagnostic> {
    let plan = load_text(Path::new(PLACE), text, overrides)?;
    assert!(!plan.cases.is_empty());
    let description = describe(&plan);
    assert!(!description.is_empty());
    Ok(description)
}

fn in_place(error: &Diagnostic, text: &str) {
    let line = error.to_string();
    assert!(!line.chars().any(char::is_control), "{line:?}");
    if error.file == PLACE && error.line > 0 {
        // To YAML a carriage return ends a line as well, and the end of the text is a place too.
        assert!(error.line <= text.matches(['\n', '\r']).count() + 2, "{line}");
        assert!(error.column > 0, "{line}");
    }
}

/// Large networks are right, and bounded, but take longer than a fuzzer should.
fn asks_for_much(text: &str) -> bool {
    const SIZES: [(&str, u32); 7] = [
        ("hops", 100),
        ("leaves", 100),
        ("depth", 4),
        ("fanout", 5),
        ("rows", 20),
        ("columns", 20),
        ("nodes", 40),
    ];
    let sizes = SIZES.iter().any(|&(key, max)| {
        text.match_indices(key).any(|(at, _)| {
            let value = text[at + key.len()..].trim_start_matches([':', '=', ' ', '\n']);
            let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
            value[..digits].parse::<u32>().map_or(digits > 0, |value| value > max)
        })
    });
    sizes || text.split(|c: char| !c.is_ascii_digit()).any(|number| number.len() > 4)
}
