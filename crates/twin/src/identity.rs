//! The identity of a run: the hash of everything on which its results depend.
//!
//! That is the resolved scenario, the repeat, the parameters by which the document names the case, and the version of
//! the program. The resolved scenario is hashed by its `Debug` form, which is derived throughout and so complete: it
//! has every field, including those added later, the values of included files, and defaults. A comment, the order of
//! keys or `5%` for `5 %` do not change it. Contents to send are hashed separately, once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use hopcast_radio::{Fleet, Motion, Position, Ship, Track};
use sha2::{Digest, Sha256};

use crate::scenario::model::{Case, Plan, Scenario};

/// The hash that identifies a run, a case or a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity([u8; 32]);

impl Identity {
    /// Parses the output of [`Display`](fmt::Display); `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// The identity of one repeat of this case.
    #[must_use]
    pub fn repeat(self, repeat: u64) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(repeat.to_le_bytes()).finalize().into())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// Computes identities for one version of the program.
#[derive(Debug)]
pub struct Identities {
    version: String,
    /// Hashes of contents to send, by their address and length in memory: the cases of a sweep share them.
    contents: Mutex<BTreeMap<(usize, usize), [u8; 32]>>,
}

impl Identities {
    /// Identities for `version`: results of another version have others.
    pub fn new(version: impl Into<String>) -> Self {
        Self { version: version.into(), contents: Mutex::default() }
    }

    /// The identity of a whole sweep, by which its parts in several directories are recognised.
    pub fn sweep(&self, plan: &Plan) -> Identity {
        let mut hash = Sha256::new().chain_update(plan.repeats.to_le_bytes());
        let _ = write!(Hashed(&mut hash), "{:?}{:?}", plan.title, plan.published);
        for case in &plan.cases {
            hash.update(self.case(case).0);
        }
        Identity(hash.finalize().into())
    }

    /// The identity of a case, which is the same in every sweep.
    pub fn case(&self, case: &Case) -> Identity {
        let mut hash = Sha256::new();
        let scenario = self.without_contents(&case.scenario);
        let scenario = without_tracks(scenario, &mut hash);
        // Each part is in quotes or brackets, so that no two sequences of parts have the same text.
        let _ = write!(Hashed(&mut hash), "{:?}{:?}{scenario:?}", self.version, case.parameters);
        Identity(hash.finalize().into())
    }

    fn without_contents<'s>(&self, scenario: &'s Scenario) -> Cow<'s, Scenario> {
        let mut scenario = Cow::Borrowed(scenario);
        for number in 0..scenario.flows.len() {
            if let Some(contents) = scenario.flows[number].app.contents() {
                let digest: Arc<[u8]> = self.digest(contents).into();
                if let Some(contents) = scenario.to_mut().flows[number].app.contents_mut() {
                    *contents = digest;
                }
            }
        }
        scenario
    }

    fn digest(&self, contents: &Arc<[u8]>) -> [u8; 32] {
        let key = (contents.as_ptr().addr(), contents.len());
        let mut known = self.contents.lock().expect("no thread panics with the lock held");
        *known.entry(key).or_insert_with(|| Sha256::digest(contents).into())
    }
}

/// The scenario with the number of its track in place of the track of each ship; each track is hashed once, since the
/// ships of a convoy share one.
fn without_tracks<'s>(mut scenario: Cow<'s, Scenario>, hash: &mut Sha256) -> Cow<'s, Scenario> {
    if scenario.fleets.is_empty() {
        return scenario;
    }
    let mut numbers = BTreeMap::new();
    let mut numbered = |motion: &Motion| {
        let track = motion.shared_track();
        let next = numbers.len();
        let number = *numbers.entry(Arc::as_ptr(track).addr()).or_insert_with(|| {
            let _ = write!(Hashed(hash), "{track:?}");
            next
        });
        let place = Position::Plane { x: number as f64, y: 0.0 };
        motion.clone().on(Track::still(place, 0.0))
    };
    for (_, fleet) in &mut scenario.to_mut().fleets {
        let ship = |ship: &Arc<Ship>| Arc::new(Ship { motion: numbered(&ship.motion), ..(**ship).clone() });
        let ships = fleet.ships.iter().map(ship).collect();
        *fleet = Arc::new(Fleet { ships, ..(**fleet).clone() });
    }
    scenario
}

/// A text sink that hashes what is written, without a copy in memory.
struct Hashed<'h>(&'h mut Sha256);

impl fmt::Write for Hashed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::{MemoryFiles, Overrides, load_text};

    const TEXT: &str = "\
duration: 1s
topology: { chain: { hops: 2, link: { rate: 10 Mbit/s, delay: 1 ms } } }
flows: [{ name: f, from: n0, to: n2, over: udp, app: bulk }]
";

    fn identity(text: &str, version: &str) -> Identity {
        let tracks = [("t", "0 0 0 40 400 0\n"), ("u", "0 0 0 40 401 0\n")];
        let files = [("a", "hello"), ("b", "hello"), ("c", "hallo")].into_iter().chain(tracks);
        let files = files.collect::<MemoryFiles>();
        let plan = load_text(&files, Path::new("test.yaml"), text, &Overrides::default()).unwrap();
        Identities::new(version).case(&plan.cases[0])
    }

    #[test]
    fn what_changes_results_changes_the_identity_and_what_does_not_does_not() {
        let ours = identity(TEXT, "1");
        assert_eq!(ours, identity(&format!("# a comment\ntitle: another\n{TEXT}"), "1"));
        assert_eq!(ours, identity(&TEXT.replace("1 ms", "1000 us"), "1"));
        assert_eq!(ours, identity(&format!("{TEXT}seed: 1\n"), "1"), "the default");
        for (from, to) in [("1s", "2s"), ("1 ms", "1001 us"), ("over: udp", "over: tcp-cubic"), ("f,", "g,")]
        {
            assert_ne!(ours, identity(&TEXT.replace(from, to), "1"), "{to}");
        }
        assert_ne!(ours, identity(&format!("{TEXT}seed: 2\n"), "1"));
        assert_ne!(ours, identity(TEXT, "2"));
        assert_ne!(ours.repeat(0), ours.repeat(1));
    }

    #[test]
    fn contents_to_send_count_and_where_they_are_does_not() {
        let of = |name: &str| {
            let app = format!("app: {{ file: {{ path: {name} }} }}");
            identity(&TEXT.replace("app: bulk", &app).replace("udp", "tcp-cubic"), "1")
        };
        assert_eq!(of("a"), of("b"));
        assert_ne!(of("a"), of("c"));
    }

    #[test]
    fn tracks_of_ships_count_and_so_do_places_on_them() {
        let text = "
duration: 1s
topology:
  nodes: [a, b, c]
  links: [{ name: sea, radio: all }]
motion:
  - { trace: t, format: bonnmotion, nodes: { a: 0 } }
  - { node: b, follows: a, behind: 10 m }
  - { node: c, follows: b, behind: 10 m, joins: 100 ms }
flows: [{ name: f, from: a, to: b, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 500 B } } }]
";
        let ours = identity(text, "1");
        assert_eq!(ours, identity(&text.replace("10 m,", "0.01 km,"), "1"));
        for (from, to) in [
            ("trace: t", "trace: u"),
            ("10 m }", "11 m }"),
            ("100 ms", "101 ms"),
            ("radio: all", "radio: all, loss: 1 %"),
        ] {
            assert_ne!(ours, identity(&text.replace(from, to), "1"), "{to}");
        }
    }

    #[test]
    fn an_identity_is_read_as_it_is_written() {
        let ours = identity(TEXT, "1");
        assert_eq!(Identity::parse(&ours.to_string()), Some(ours));
        for wrong in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Identity::parse(wrong), None);
        }
    }
}
