//! Recorded drops.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use crate::common::*;
use hopcast_link::Loss;
use proptest::prelude::*;

#[test]
fn a_trace_is_replayed_from_its_beginning_and_repeated() {
    let loss = Loss::trace_from_str("0110 # two lost\n0\t1").unwrap();
    let expected = [0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0].map(|lost| lost == 1);
    assert_eq!(losses(&loss, 13, 1), expected);
    assert_eq!(loss.stationary().get(), 0.5);
    // Bursts of 2 and of 1; the end does not join the beginning.
    assert_eq!(loss.mean_burst(), 1.5);
}

#[test]
fn a_burst_may_go_over_the_end_of_a_trace() {
    assert_eq!(Loss::trace_from_str("1001").unwrap().mean_burst(), 2.0);
    assert_eq!(Loss::trace_from_str("11").unwrap().mean_burst(), f64::INFINITY);
    assert_eq!(Loss::trace_from_str("00").unwrap().mean_burst(), 0.0);
}

#[test]
fn another_character_is_shown_by_line_and_column() {
    let error = Loss::trace_from_str("01# fine: x\r\n 0 x").unwrap_err();
    assert_eq!((error.line, error.column), (2, 4));
    assert_eq!(error.to_string(), "2:4: expected `0` (delivered) or `1` (lost), found `x`");
}

#[test]
fn a_trace_of_no_packet_is_refused() {
    assert!(Loss::trace_from_str("# nothing\n").unwrap_err().message.contains("found no packet"));
}

proptest! {
    #[test]
    fn what_is_written_reads_back(lost in proptest::collection::vec(proptest::bool::ANY, 1..200)) {
        let text: String = lost.iter().map(|&lost| if lost { '1' } else { '0' }).collect();
        prop_assert_eq!(Loss::trace_from_str(&text), Ok(Loss::Trace(lost.into())));
    }

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = Loss::trace_from_str(&text);
    }
}
