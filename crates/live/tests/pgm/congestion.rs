//! PGMCC between our members and OpenPGM's: the acker acknowledges each packet, and the source's window follows.

use hopcast_core::Rate;
use hopcast_reliable::pgm::{RateControl, SourceConfig};

use crate::common::{ms, pause};
use crate::ours::{Ours, source};
use crate::peer::{Peer, Transfer};
use crate::segment::segment;
use crate::transfers::{SHORT, receives, sends, some_bytes};

fn controlled(mut settings: Vec<String>) -> Vec<String> {
    settings.push("pgmcc=yes".to_owned());
    settings
}

/// Packets of a file, each with a datagram of ours or a message of OpenPGM's.
const PACKETS: u64 = SHORT as u64 / 1500;

#[test]
fn a_source_of_ours_follows_the_acknowledgements_of_openpgm() {
    for loss in [0.0, 0.02] {
        let Some(net) = segment(2, loss) else { return };
        let file = some_bytes(SHORT, 9);
        let mut theirs = Peer::start(&net.lab, 1, &controlled(receives(SHORT)));
        theirs.wait_for("ready", 1);
        let config = SourceConfig { rate: RateControl::Pgmcc { max: Rate::from_mbit(8) }, ..source() };
        let mut sender = Ours::start(&net, 0, 1, Some(config), None, file.clone());
        assert!(theirs.finish(), "{}{:#?}", theirs.log(), sender.finish());
        let counters = sender.finish_having_read_all();
        assert_eq!(theirs.completed(), [Transfer::of("data", &file)]);
        assert!(counters["acker_elections"] > 0, "{counters:#?}");
        assert!(counters["acks_received"] > PACKETS / 2, "{counters:#?}");
    }
}

/// OpenPGM 5.3.128 itself goes no further than a few packets as a source with congestion control: its own receiver has
/// two of them after 18 s. Packets that it holds back are in the window of its SPMs, and a request for one has it
/// repaired with a checksum of its headers alone, which its receivers and ours refuse. What can be seen is that ours
/// answers the election that it holds.
#[test]
fn a_source_of_openpgm_that_looks_for_an_acker_is_acknowledged() {
    let Some(net) = segment(2, 0.0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, some_bytes(SHORT, 10)).unwrap();
    let mut ours = Ours::receiver(&net, 1);
    let mut sender = Peer::start(&net.lab, 0, &controlled(sends(&path)));
    ours.wait_for(1);
    pause(ms(300));
    sender.kill();
    let counters = ours.finish();
    // Each packet of its own that is no request.
    assert!(counters["feedback_packets_sent"] > counters["nacks_sent"], "{counters:#?}");
}
