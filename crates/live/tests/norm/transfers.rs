//! Transfers both ways, at several losses.

use std::path::Path;

use crate::ours::{Given, Ours};
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

/// Settings of a sender of libnorm that is given these files.
pub(crate) fn sends(objects: &[(&str, &Path)], more: &[&str]) -> Vec<String> {
    let fixed = ["role=send", "rate=8e6", "grtt=0.05", "group-size=10", "parity=32", "seconds=90"];
    let mut settings: Vec<String> = fixed.iter().chain(more).map(|&word| word.to_owned()).collect();
    settings.extend(objects.iter().map(|(kind, path)| format!("{kind}={}", path.display())));
    settings
}

/// Settings of a receiver of libnorm that is done after this number of objects.
pub(crate) fn receives(into: &Path, objects: usize, more: &[&str]) -> Vec<String> {
    let mut settings =
        vec!["role=receive".to_owned(), format!("objects={objects}"), format!("into={}", into.display())];
    settings.push("seconds=90".to_owned());
    settings.extend(more.iter().map(|&word| word.to_owned()));
    settings
}

/// Without it, libnorm takes a stream from the first symbol on that arrives.
const FROM_THE_START: &str = "sync=stream";

fn sorted<const N: usize>(mut transfers: [Transfer; N]) -> Vec<Transfer> {
    transfers.sort();
    transfers.to_vec()
}

/// Sends data, a file and a stream of `len` bytes to two receivers, one of libnorm and one of ours.
fn ours_sends(loss: f64, len: usize) {
    let Some(net) = segment(3, loss) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [data, file, stream] = [1, 2, 3].map(|mark| some_bytes(len + mark as usize, mark));
    let mut theirs = Peer::start(&net.lab, 1, &receives(folder.path(), 3, &[FROM_THE_START]));
    theirs.wait_for("ready", 1);
    let mut ours = Ours::receiver(&net, 2);
    let given = vec![
        Given::Data(data.clone()),
        Given::File(file.clone(), "a-file".to_owned()),
        Given::Stream(stream.clone()),
    ];
    let mut sender = Ours::sender(&net, 0, given);
    assert!(theirs.finish(), "{}{:#?}", theirs.log(), sender.finish());
    ours.wait_for(3);
    assert_eq!(
        theirs.completed(),
        sorted([Transfer::of("data", &data), Transfer::of("file", &file), Transfer::of("stream", &stream)])
    );
    assert_eq!(std::fs::read(folder.path().join("a-file")).unwrap(), file, "it has the name of its info");
    assert_eq!(
        ours.heard().completed(),
        sorted([Transfer::of("data", &data), Transfer::of("data", &file), Transfer::of("stream", &stream)])
    );
}

/// Receives data, a file and a stream of `len` bytes from libnorm, beside a receiver of libnorm.
fn libnorm_sends(loss: f64, len: usize) {
    let Some(net) = segment(3, loss) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [data, file, stream] = [1, 2, 3].map(|mark| some_bytes(len + mark as usize, mark));
    let paths = ["data", "file", "stream"].map(|name| folder.path().join(name));
    for (path, bytes) in paths.iter().zip([&data, &file, &stream]) {
        std::fs::write(path, bytes).unwrap();
    }
    let into = folder.path().join("into");
    std::fs::create_dir(&into).unwrap();
    let mut theirs = Peer::start(&net.lab, 1, &receives(&into, 3, &[FROM_THE_START]));
    theirs.wait_for("ready", 1);
    let mut ours = Ours::receiver(&net, 2);
    let objects = [("data", &*paths[0]), ("file", &*paths[1]), ("stream", &*paths[2])];
    let mut sender = Peer::start(&net.lab, 0, &sends(&objects, &["linger=20"]));
    ours.wait_for(3);
    assert!(theirs.finish(), "{}{}", theirs.log(), sender.log());
    assert_eq!(
        ours.heard().completed(),
        sorted([Transfer::of("data", &data), Transfer::of("data", &file), Transfer::of("stream", &stream)])
    );
    assert_eq!(
        theirs.completed(),
        sorted([Transfer::of("data", &data), Transfer::of("file", &file), Transfer::of("stream", &stream)])
    );
    sender.kill();
}

/// Length of each object in the tests that always run. Chosen: a few blocks, and a second at the rate of the senders.
const SHORT: usize = 300_000;

#[test]
fn what_ours_sends_arrives_at_libnorm_without_loss() {
    ours_sends(0.0, SHORT);
}

#[test]
fn what_ours_sends_arrives_at_libnorm_with_loss() {
    ours_sends(0.05, SHORT);
    ours_sends(0.2, SHORT);
}

#[test]
fn what_libnorm_sends_arrives_here_without_loss() {
    libnorm_sends(0.0, SHORT);
}

#[test]
fn what_libnorm_sends_arrives_here_with_loss() {
    libnorm_sends(0.05, SHORT);
    libnorm_sends(0.2, SHORT);
}

#[test]
#[ignore = "takes minutes"]
fn ten_transfers_each_way_arrive_at_each_loss() {
    for loss in [0.0, 0.05, 0.2] {
        for round in 0..10 {
            ours_sends(loss, 800_000 + round);
            libnorm_sends(loss, 800_000 + round);
        }
    }
}
