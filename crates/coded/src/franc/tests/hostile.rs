//! Frames that nobody should have sent.

use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Port};
use proptest::prelude::*;
use proptest::sample::Index;

use super::net::*;
use crate::franc::bits::Bits;
use crate::franc::wire::{self, Ack, Coding, Common, Enc, Heard, Hello, Known, Packet, Report};
use crate::franc::{Config, Field};

/// An event of three machines that hear everything one after the other.
#[derive(Clone, Debug)]
enum Step {
    /// A packet enters at one end.
    Enter(bool, usize),
    /// A frame of those that were sent is heard, perhaps once more.
    Hear(Index),
    /// It is heard with a byte changed, or cut off.
    Damage(Index, Index, u8, bool),
    /// Somebody makes a packet of the association up, which is well formed.
    Forge {
        up: bool,
        relayed: bool,
        numbers: (u32, u16, u8, u8),
        words: [u64; 4],
        kind: u8,
        body: Vec<u8>,
    },
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let forge = (
        any::<(bool, bool)>(),
        any::<(u32, u16, u8, u8)>(),
        any::<[u64; 4]>(),
        0u8..5,
        proptest::collection::vec(any::<u8>(), 0..60),
        0u32..4,
    );
    let step = prop_oneof![
        3 => (any::<bool>(), 1usize..1_400).prop_map(|(end, len)| Step::Enter(end, len)),
        6 => any::<Index>().prop_map(Step::Hear),
        1 => any::<(Index, Index, u8, bool)>().prop_map(|(frame, at, with, cut)| Step::Damage(frame, at, with, cut)),
        2 => forge.prop_map(|((up, relayed), mut numbers, words, kind, body, near)| {
            // Most numbers are refused at once; those of blocks that may be at work are not.
            if near > 0 { numbers.0 %= 8; numbers.1 %= 64 }
            Step::Forge { up, relayed, numbers, words, kind, body }
        }),
        4 => (1u64..30).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..300)
}

/// The frame that `step` makes up, for the association of `sent`.
fn forged(step: &Step, sent: &[Buffer], config: &Config) -> Option<Buffer> {
    let Step::Forge { up, relayed, numbers: (number, sequence, a, b), words, kind, body } = step else {
        return None;
    };
    let association = sent.iter().rev().find_map(|frame| {
        let (common, _) = wire::parse(&frame[14..], config).ok()?;
        (common.association != 0).then_some(common.association)
    })?;
    let symbols: Bits = Bits::from_words(*words).iter().filter(|&symbol| symbol < config.block).collect();
    let known = Known { rank: (symbols.count() as u8).max(a % config.block.saturating_add(1)), symbols };
    let heard = Heard { next: *sequence, received: sequence.wrapping_sub(u16::from(*b)) };
    let ack = Ack {
        number: *number,
        heard,
        helper: heard,
        base: number % 16,
        blocks: vec![known; usize::from(b % 9)],
    };
    let added = (a % config.block).max(1);
    let coding = match kind {
        0 => Coding::Symbol(b % added),
        _ => Coding::Sum(symbols.iter().filter(|&symbol| symbol < added).collect()),
    };
    let enc = |ack| Enc {
        block: *number,
        sequence: *sequence,
        added,
        coding,
        behind: false,
        ack,
        report: relayed.then_some(Report { heard, told: *sequence, block: *number, known }),
        symbol: body,
    };
    let packet = match kind {
        0 | 1 => Packet::Enc(enc(None)),
        2 => Packet::Enc(enc(Some(ack))),
        3 => Packet::Ack(ack),
        _ => Packet::Hello(Hello { own: *number, peer: u32::from(*sequence), profile: config.profile() }),
    };
    // From the end that says so, or from the helper.
    let (from, to) = if *up { (0, 1) } else { (1, 0) };
    let from = if *relayed { 2 } else { from };
    Some(wire::emit((mac(from), mac(to)), Common { association, up: *up }, &packet, config))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_that_is_heard_panics_or_fills_the_memory(
        steps in steps(), block in 1u8..=255, window in 1u8..=8,
        binary: bool, budget: bool,
    ) {
        let plain = if budget { Config::paper() } else { Config::default() };
        let config = Config { block, window, ..plain }.over(if binary { Field::Binary } else { Field::Binary8 });
        let config = config.with_helper();
        let config = Config { mtu: config.mtu.min(config.symbol - 4), ..config };
        let mut machines = [edge(&config, 0, 1, 1), edge(&config, 1, 0, 1), helper(&config, 2, [0, 1], 1)];
        let (mut now, mut sent) = (Instant::ZERO, Vec::<Buffer>::new());
        for step in &steps {
            let chosen = |index: &Index| (!sent.is_empty()).then(|| index.get(&sent).clone());
            let heard = match step {
                Step::Enter(end, len) => {
                    let packet = Buffer::zeroed((*len).min(usize::from(config.mtu)));
                    machines[usize::from(*end)].handle(now, Port::Above(0), Item::Packet(packet));
                    None
                }
                Step::Hear(index) => chosen(index),
                Step::Damage(index, at, with, cut) => chosen(index).map(|mut frame| {
                    let at = at.index(frame.len());
                    frame[at] ^= with;
                    if *cut { Buffer::copy_from(&frame[..at]) } else { frame }
                }),
                Step::Forge { .. } => forged(step, &sent, &config),
                Step::Pass(millis) => {
                    now += Duration::from_millis(*millis);
                    None
                }
            };
            for machine in &mut machines {
                if let Some(bytes) = &heard {
                    machine.handle(now, Port::Below(0), Item::Frame(Frame { overheard: true, ..Frame::new(bytes.clone()) }));
                }
                if machine.deadline().is_some_and(|at| at <= now) {
                    machine.wake(now);
                }
                let mut count = 0;
                while let Some((port, item)) = machine.poll(now) {
                    if let (Port::Below(_), Item::Frame(frame)) = (port, item) {
                        prop_assert!(frame.bytes.len() <= 14 + 1_500);
                        sent.push(frame.bytes);
                        count += 1;
                    }
                    prop_assert!(count <= 100, "frames without end");
                }
                prop_assert!(machine.deadline().is_none_or(|at| at > now), "a deadline that has passed");
            }
        }
    }
}
