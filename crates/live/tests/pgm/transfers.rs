//! Files both ways, at several losses; receivers that come late, sources that start again, windows that are overrun.

use std::path::Path;

use hopcast_reliable::pgm::{Join, ReceiverConfig, SourceConfig};

use crate::common::{ms, pause};
use crate::ours::{Ours, source};
use crate::peer::{Peer, Transfer};
use crate::segment::segment;

/// Bytes that no two places of have in common.
pub(crate) fn some_bytes(len: usize, mark: u64) -> Vec<u8> {
    let mut state = mark | 1;
    let mut next = || {
        // Numerical Recipes' generator: this is no secret.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Settings of a sender of OpenPGM.
pub(crate) fn sends(file: &Path) -> Vec<String> {
    let fixed = ["role=send", "rate=8e6", "seconds=90", "linger=10", "ambient=0.2"];
    let mut settings: Vec<String> = fixed.iter().map(|&word| word.to_owned()).collect();
    settings.push(format!("file={}", file.display()));
    settings
}

/// Settings of a receiver of OpenPGM that is done after this many bytes.
pub(crate) fn receives(len: usize) -> Vec<String> {
    let fixed = ["role=receive", "seconds=90", "repeat=0.2", "repair=0.2"];
    let mut settings: Vec<String> = fixed.iter().map(|&word| word.to_owned()).collect();
    settings.push(format!("size={len}"));
    settings
}

/// Sends a file to two receivers, one of OpenPGM and one of ours.
fn ours_sends(loss: f64, len: usize) {
    let Some(net) = segment(3, loss) else { return };
    let file = some_bytes(len, 1);
    let mut theirs = Peer::start(&net.lab, 1, &receives(len));
    theirs.wait_for("ready", 1);
    let mut ours = Ours::receiver(&net, 2);
    let mut sender = Ours::sender(&net, 0, file.clone());
    assert!(theirs.finish(), "{}{:#?}", theirs.log(), sender.finish());
    assert_eq!(theirs.completed(), [Transfer::of("data", &file)]);
    assert_eq!(ours.transfer(len), Transfer::of("data", &file));
    sender.finish_having_read_all();
    ours.finish_having_read_all();
}

/// Receives a file from OpenPGM, beside a receiver of OpenPGM.
fn openpgm_sends(loss: f64, len: usize) {
    let Some(net) = segment(3, loss) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = some_bytes(len, 2);
    let path = folder.path().join("file");
    std::fs::write(&path, &file).unwrap();
    let mut theirs = Peer::start(&net.lab, 1, &receives(len));
    theirs.wait_for("ready", 1);
    let mut ours = Ours::receiver(&net, 2);
    let mut sender = Peer::start(&net.lab, 0, &sends(&path));
    assert_eq!(ours.transfer(len), Transfer::of("data", &file));
    assert!(theirs.finish(), "{}{}", theirs.log(), sender.log());
    assert_eq!(theirs.completed(), [Transfer::of("data", &file)]);
    sender.kill();
}

/// Length of a file in the tests that always run: a third of a second at the rate of the senders.
pub(crate) const SHORT: usize = 300_000;

#[test]
fn what_ours_sends_arrives_at_openpgm_without_loss() {
    ours_sends(0.0, SHORT);
}

#[test]
fn what_ours_sends_arrives_at_openpgm_with_loss() {
    ours_sends(0.05, SHORT);
    ours_sends(0.2, SHORT);
}

#[test]
fn what_openpgm_sends_arrives_here_without_loss() {
    openpgm_sends(0.0, SHORT);
}

#[test]
fn what_openpgm_sends_arrives_here_with_loss() {
    openpgm_sends(0.05, SHORT);
    openpgm_sends(0.2, SHORT);
}

#[test]
#[ignore = "takes minutes"]
fn ten_transfers_each_way_arrive_at_each_loss() {
    for loss in [0.0, 0.05, 0.2] {
        for round in 0..10 {
            ours_sends(loss, 800_000 + round);
            openpgm_sends(loss, 800_000 + round);
        }
    }
}

#[test]
fn a_receiver_of_ours_that_comes_late_asks_openpgm_for_all_it_still_has() {
    let Some(net) = segment(2, 0.05) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = some_bytes(4 * SHORT, 3);
    let path = folder.path().join("file");
    std::fs::write(&path, &file).unwrap();
    let sender = Peer::start(&net.lab, 0, &sends(&path));
    sender.wait_for("ready", 1);
    pause(ms(1_000));
    let receiver = ReceiverConfig { join: Join::Everything, ..ReceiverConfig::default() };
    let mut late = Ours::start(&net, 1, 1, None, Some(receiver), Vec::new());
    assert_eq!(late.transfer(file.len()), Transfer::of("data", &file));
}

#[test]
fn a_source_of_ours_that_starts_again_is_another_one_to_openpgm() {
    let Some(net) = segment(2, 0.05) else { return };
    let file = some_bytes(SHORT, 4);
    let mut first = Ours::sender(&net, 0, some_bytes(2_000_000, 5));
    pause(ms(700));
    first.finish();
    // What it has sent is past.
    pause(ms(1_000));
    let mut theirs = Peer::start(&net.lab, 1, &receives(SHORT));
    theirs.wait_for("ready", 1);
    let mut again = Ours::start(&net, 0, 2, Some(source()), None, file.clone());
    assert!(theirs.finish(), "{}{:#?}", theirs.log(), again.finish());
    assert_eq!(theirs.completed(), [Transfer::of("data", &file)]);
}

#[test]
fn a_receiver_of_openpgm_behind_the_window_of_ours_hears_that_it_has_lost_data() {
    let Some(net) = segment(2, 0.2) else { return };
    let file = some_bytes(2_000_000, 6);
    let mut theirs = Peer::start(&net.lab, 1, &receives(file.len()));
    theirs.wait_for("ready", 1);
    // A window of a few packets, which waits for nobody.
    let config = SourceConfig { window: 8_000, patience: hopcast_core::Duration::ZERO, ..source() };
    let _sender = Ours::start(&net, 0, 1, Some(config), None, file);
    theirs.wait_for("lost", 1);
    theirs.kill();
}
