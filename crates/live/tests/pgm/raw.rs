//! PGM as a protocol of IP, without UDP: on raw sockets, as RFC 3208 has it.

use crate::ours::Ours;
use crate::peer::{Peer, Transfer};
use crate::segment::segment;
use crate::transfers::{SHORT, receives, sends, some_bytes};

fn raw(mut settings: Vec<String>) -> Vec<String> {
    settings.push("raw=yes".to_owned());
    settings
}

/// Sends a file to two receivers, one of OpenPGM and one of ours.
fn ours_sends(loss: f64) {
    let Some(net) = segment(3, loss) else { return };
    let file = some_bytes(SHORT, 7);
    let mut theirs = Peer::start(&net.lab, 1, &raw(receives(SHORT)));
    theirs.wait_for("ready", 1);
    let mut ours = Ours::start_raw(&net, 2, None);
    let mut sender = Ours::start_raw(&net, 0, Some(file.clone()));
    assert!(theirs.finish(), "{}{:#?}", theirs.log(), sender.finish());
    assert_eq!(theirs.completed(), [Transfer::of("data", &file)]);
    assert_eq!(ours.transfer(SHORT), Transfer::of("data", &file));
    sender.finish_having_read_all();
    ours.finish_having_read_all();
}

/// Receives a file from OpenPGM, beside a receiver of OpenPGM.
fn openpgm_sends(loss: f64) {
    let Some(net) = segment(3, loss) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (some_bytes(SHORT, 8), folder.path().join("file"));
    std::fs::write(&path, &file).unwrap();
    let mut theirs = Peer::start(&net.lab, 1, &raw(receives(SHORT)));
    theirs.wait_for("ready", 1);
    let mut ours = Ours::start_raw(&net, 2, None);
    let mut sender = Peer::start(&net.lab, 0, &raw(sends(&path)));
    assert_eq!(ours.transfer(SHORT), Transfer::of("data", &file));
    assert!(theirs.finish(), "{}{}", theirs.log(), sender.log());
    assert_eq!(theirs.completed(), [Transfer::of("data", &file)]);
    sender.kill();
}

#[test]
fn what_ours_sends_on_ip_itself_arrives_at_openpgm() {
    [0.0, 0.05, 0.2].into_iter().for_each(ours_sends);
}

#[test]
fn what_openpgm_sends_on_ip_itself_arrives_here() {
    [0.0, 0.05, 0.2].into_iter().for_each(openpgm_sends);
}
