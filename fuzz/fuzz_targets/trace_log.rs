//! The log of a run, cut off or changed: it is read up to where it makes no sense, in memory that its length bounds,
//! and whatever was read can be followed and told.
#![no_main]

use hopcast_trace::log::MAX_STORED;
use hopcast_trace::view::{story_json, story_text, summary, summary_text};
use hopcast_trace::{Log, Query, follow};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(log) = Log::read(bytes.to_vec()) else { return };
    assert!(log.contents() as usize <= bytes.len());
    for number in 1..=log.contents() {
        let content = log.content(number).expect("each number up to the last");
        assert!(content.bytes.len() <= MAX_STORED);
    }
    for event in log.events() {
        assert!((event.place as usize) < log.places().len());
        assert!(event.content == 0 || log.content(event.content).is_some());
    }
    summary_text(&summary(&log));
    let story = follow(&log, &Query::default());
    assert!(story.steps.len() <= log.events().count());
    story_text(&story, 3);
    story_json(&story, 3);
});
