//! The README's tables are what the program prints.
//!
//! After a change that means to move figures: `HOPCAST_RECORD=1 cargo test -p hopcast --test readme` writes them anew.

mod common;

use std::fs;

use common::{command, repository, text};

/// The README's columns: a page of it is no wider.
const COLUMNS: &str = "110";

#[test]
fn the_tables_of_the_readme_are_what_the_program_prints() {
    let path = repository("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut written = String::new();
    let mut held = 0;
    let mut rest = readme.as_str();
    while let Some((before, block, after)) = next_block(rest) {
        written.push_str(before);
        let (typed, shown) = block.split_once('\n').unwrap_or((block, ""));
        match printed_by(typed) {
            Some(printed) => {
                held += 1;
                if std::env::var_os("HOPCAST_RECORD").is_none() {
                    assert_eq!(shown, printed, "the README shows another table than `{typed}` prints");
                }
                written.push_str(typed);
                written.push('\n');
                written.push_str(&printed);
            }
            None => written.push_str(block),
        }
        rest = after;
    }
    written.push_str(rest);
    assert_eq!(held, 2, "the tables of `make run` and of the study");
    if std::env::var_os("HOPCAST_RECORD").is_some() {
        fs::write(&path, written).unwrap();
    }
}

/// Up to a block of code that begins with a command, the block, and what follows it.
fn next_block(text: &str) -> Option<(&str, &str, &str)> {
    let begin = text.find("```\n$ ")? + "```\n".len();
    let end = begin + text[begin..].find("```")?;
    Some((&text[..begin], &text[begin..end], &text[end..]))
}

/// The table that a command of the README prints; none if it needs more than this program.
fn printed_by(typed: &str) -> Option<String> {
    let typed = typed.strip_prefix("$ ")?.split(" #").next()?.trim();
    let mut arguments = match typed.strip_prefix("hopcast ") {
        Some(arguments) if arguments.starts_with("study ") => words(arguments),
        None if typed == "make run" => words("run scenarios/six-hops.yaml"),
        _ => return None,
    };
    let dir = tempfile::tempdir().expect("a directory for a run");
    arguments.extend(["--out".to_owned(), dir.path().join("run").display().to_string()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output =
        command(&repository("."), &arguments).env("COLUMNS", COLUMNS).output().expect("hopcast starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout))
}

/// A command's words; single quotes keep one together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
