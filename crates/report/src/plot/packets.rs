//! Where packets of a recorded run died: the picture of the verdict of most interest.

mod saved;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use hopcast_trace::log::EXTENSION;
use hopcast_trace::verdict::{Finding, Verdict, verdicts};
use hopcast_trace::view::marks_of_packets;
use hopcast_trace::{Log, Query, follow};

use self::saved::{Found, LogKey, Saved};
use super::network::RoutePicture;
use super::{Plot, Section};
use crate::Topology;

/// Maximum number of bytes of a log that are read. Chosen: a second's work; faults show where a log begins.
const MAX_BYTES: u64 = 64 << 20;

/// The picture of the packets in a run directory's first log that did not arrive, as far as `hopcast trace` says so in
/// its first line; `None` without a log that can be read, or where nothing is amiss. The log is read once: what was
/// found in it is saved beside it.
pub(crate) fn plot(dir: &Path, topology: &Topology) -> Option<Plot> {
    let logs = logs(dir);
    let log = LogKey::of(&logs)?;
    let found = match Saved::read(dir) {
        Some(Saved { log: of, found }) if of == log => found,
        _ => {
            let found = search(&logs);
            Saved { log, found: found.clone() }.write(dir);
            found
        }
    };
    let (caption, marks) = found.map(Found::into_marks)?;
    let picture = RoutePicture::new(topology, &marks, &caption);
    Some(Plot::new(Section::Packets, "packets", caption.clone(), Vec::new(), |size| picture.paint(size)))
}

/// The verdict of most interest on packets of the first log that did not arrive, and their marks.
fn search(logs: &[PathBuf]) -> Option<Found> {
    let mut bytes = Vec::new();
    File::open(logs.first()?).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let is_whole = (bytes.len() as u64) < MAX_BYTES;
    let log = Log::read(bytes).ok()?;
    let story = follow(&log, &Query::default());
    let verdict = verdicts(&story).into_iter().find(is_amiss)?;
    let marks = marks_of_packets(&story, &verdict.places);
    let of = match (logs.len(), is_whole) {
        (1, true) => String::new(),
        (1, false) => format!(" In the first {} MB of the log.", MAX_BYTES >> 20),
        (runs, true) => format!(" In the first of {runs} runs."),
        (runs, false) => {
            format!(" In the first {} MB of the log of the first of {runs} runs.", MAX_BYTES >> 20)
        }
    };
    Some(Found::new(format!("{verdict}.{of}"), marks))
}

/// The logs of a run directory, in the order of their runs.
fn logs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("captures")).into_iter().flatten().flatten();
    let mut logs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    logs.retain(|file| file.extension().is_some_and(|extension| extension == EXTENSION));
    logs.sort();
    logs
}

/// Whether a verdict is of packets that are missing somewhere, or has more to say.
fn is_amiss(verdict: &Verdict) -> bool {
    match verdict.finding {
        Finding::Died { .. } | Finding::Unclaimed { .. } | Finding::Lost { .. } => true,
        // A copy that a host drops on a shared wire is no loss while others arrive.
        Finding::Held { .. } | Finding::Partly { .. } | Finding::Arrived { .. } => verdict.note.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Instant;
    use hopcast_trace::MemoryLog;
    use hopcast_trace::log::Place;

    use super::*;
    use crate::{TopologyLink, TopologyNode};

    /// A run directory with a log of frames from a to b, each of which is lost or arrives.
    fn directory(lost: &[bool]) -> tempfile::TempDir {
        let memory = MemoryLog::default();
        let mut recorder = memory.recorder(1 << 20);
        for node in ["a", "b"] {
            let (node, name, link) = (node.to_owned(), "eth0".to_owned(), "wire".to_owned());
            recorder.place(&Place::Interface { node, name, link, mtu: 1500, mac: [0; 6] });
        }
        for (number, &lost) in (0_u8..).zip(lost) {
            let at = Instant::from_nanos(number.into());
            let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5][..], &[number; 50]].concat();
            recorder.sent(at, 0, &frame);
            match lost {
                true => recorder.dropped(at, 0, Some(1), &frame, "lost on the link"),
                false => recorder.delivered(at, 1, 0, &frame),
            }
        }
        recorder.finish().unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("captures")).unwrap();
        fs::write(dir.path().join("captures/run-0.trace"), memory.take()).unwrap();
        dir
    }

    fn topology() -> Topology {
        let node = |name: &str| TopologyNode { name: name.to_owned(), position: None };
        let link = TopologyLink { name: "wire".to_owned(), ends: vec![0, 1], rate_mbps: None };
        Topology { nodes: vec![node("a"), node("b")], links: vec![link] }
    }

    #[test]
    fn the_picture_has_the_first_line_and_the_packets_that_it_is_of() {
        let dir = directory(&[true, false, true]);
        let plot = plot(dir.path(), &topology()).unwrap();
        let caption = "frame of type 0x88b5 died on link wire, from a to b: lost on the link, 2 of 3.";
        assert_eq!(plot.caption, caption);
        assert!(plot.standalone().contains("2 lost"), "{}", plot.standalone());
    }

    #[test]
    fn a_log_is_read_again_only_if_it_is_another() {
        let dir = directory(&[true, false, true]);
        plot(dir.path(), &topology()).unwrap();
        let saved = dir.path().join("captures/packets.json");
        let text = fs::read_to_string(&saved).unwrap();
        fs::write(&saved, text.replace("2 of 3", "as it was saved")).unwrap();
        assert!(plot(dir.path(), &topology()).unwrap().caption.ends_with(", as it was saved."));
        let other = directory(&[false, false, true]);
        let log = "captures/run-0.trace";
        fs::copy(other.path().join(log), dir.path().join(log)).unwrap();
        assert!(plot(dir.path(), &topology()).unwrap().caption.ends_with(", 1 of 3."));
        fs::write(&saved, "no JSON").unwrap();
        assert!(plot(dir.path(), &topology()).unwrap().caption.ends_with(", 1 of 3."));
    }

    #[test]
    fn without_a_log_and_without_a_dead_packet_there_is_no_picture() {
        assert_eq!(plot(tempfile::tempdir().unwrap().path(), &topology()), None);
        let dir = directory(&[true]);
        fs::write(dir.path().join("captures/run-0.trace"), b"no log").unwrap();
        assert_eq!(plot(dir.path(), &topology()), None);
    }
}
