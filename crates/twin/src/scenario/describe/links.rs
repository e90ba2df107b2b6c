//! Links with all their values, those of one model on one line each.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};

use hopcast_core::Rate;
use hopcast_link::{
    Config, Csma, Direction, Duplex, Jitter, Loss, Mac, MediumConfig, PairLoss, Queue, QueueLimit, Rts,
    SwitchConfig,
};
use hopcast_radio::{Fleet, Law};

use super::super::capacity::mean_loss;
use super::super::model::{LinkModel, NodeId, Scenario};
use super::{MAX_LISTED, counted, shortened};

/// Links, those of one model on one line: the values, then the names.
pub(super) fn write_links(out: &mut String, scenario: &Scenario) -> fmt::Result {
    writeln!(out, "\nLinks: {}", scenario.links.len())?;
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    let mut places = BTreeMap::new();
    for (number, link) in scenario.links.iter().enumerate() {
        let model = match &link.model {
            LinkModel::PointToPoint(config) => point_to_point(config),
            LinkModel::Medium(config) => match scenario.fleet(number) {
                Some(fleet) => radios(config, fleet),
                None => medium(config, &link.ends, scenario),
            },
            LinkModel::Switch(config) => switch(config, &link.ends, scenario),
        };
        let place = *places.entry(model).or_insert_with_key(|model| {
            kinds.push((model.clone(), Vec::new()));
            kinds.len() - 1
        });
        kinds[place].1.push(&link.name);
    }
    let more = kinds.len().saturating_sub(MAX_LISTED);
    for (model, names) in kinds.iter().take(MAX_LISTED) {
        writeln!(out, "  {}", shortened(names))?;
        for line in model.lines() {
            writeln!(out, "    {line}")?;
        }
    }
    if more > 0 { writeln!(out, "  and {more} more kinds of links") } else { Ok(()) }
}

/// The radios of ships: their channel, and when and how they send.
fn radios(config: &MediumConfig, fleet: &Fleet) -> String {
    let Fleet { channel, ships, loss, hysteresis, .. } = fleet;
    let rates = channel.rates.rows().iter().map(|row| format!("{} from {} dBm", row.rate, row.signal));
    let antennas = ships.iter().map(|ship| format!("{} {}", ship.name, ship.radio.antennas().beams()));
    let law = match channel.law {
        Law::FreeSpace { .. } => "free space".to_owned(),
        Law::TwoRay { .. } => "two rays over sea".to_owned(),
        Law::LogDistance { reference, exponent } => {
            format!("a loss of {reference} dB at 1 m and {} dB for each tenfold distance", 10.0 * exponent)
        }
    };
    let shadowing =
        channel.shadowing.map_or_else(String::new, |it| format!(", shadowing of {} dB", it.deviation));
    let mac = match &config.mac {
        Mac::Csma(_) => "CSMA/CA",
        Mac::EthernetLike => "a line for each pair",
        Mac::Perfect => "a perfect schedule",
    };
    format!(
        "the radios of {} ships: {mac}, delay {}, loss {loss}, hysteresis {hysteresis} dB\nantennas: {}\n{law}{shadowing}\n\
         rates: {}",
        ships.len(),
        config.direction.delay,
        shortened(&antennas.collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>()),
        rates.collect::<Vec<_>>().join(", ")
    )
}

fn medium(config: &MediumConfig, ends: &[NodeId], scenario: &Scenario) -> String {
    let mut text = format!("a medium of {} stations: {}", ends.len(), Words(&config.direction));
    // Writing to a string cannot fail.
    let _ = match &config.mac {
        Mac::Perfect => Ok(()),
        Mac::EthernetLike => write!(text, "\neach pair of stations has a line of its own"),
        Mac::Csma(csma) => {
            let Csma { slot, sifs, difs, cw_min, cw_max, retries, overhead, ack, channel, rts } = csma;
            let channel = loss(channel);
            write!(
                text,
                "\nCSMA/CA: slot {slot}, SIFS {sifs}, DIFS {difs}, window {cw_min} to {cw_max}, overhead {overhead}, \
                 acknowledgement {ack}, {retries} retries, channel loss {channel}"
            )
            .and_then(|()| match rts {
                None => Ok(()),
                Some(Rts { threshold, rts, cts }) => {
                    write!(text, "\nRTS of {rts} and CTS of {cts} before frames of at least {threshold}")
                }
            })
        }
    };
    for (from, station) in ends.iter().enumerate().filter(|_| config.hears.is_some()) {
        let heard = config.hears.iter().flatten().filter(|(sender, _)| *sender == from);
        let heard: Vec<&str> = heard.map(|(_, to)| scenario.nodes[ends[*to]].name.as_str()).collect();
        let by = if heard.is_empty() { "nobody".to_owned() } else { shortened(&heard) };
        let _ = write!(text, "\n{} is heard by {by}", scenario.nodes[*station].name);
    }
    text + &pairs(&config.pairs, ends, scenario)
}

/// The values that most stations of a switch have, and each station that differs.
fn switch(config: &SwitchConfig, ends: &[NodeId], scenario: &Scenario) -> String {
    let same = |one: &&Direction| config.directions.iter().filter(|other| other == one).count();
    let usual = config.directions.iter().rev().max_by_key(same);
    let mut text = format!("a switch with {} stations", ends.len());
    // Writing to a string cannot fail.
    let _ = usual.map_or(Ok(()), |usual| write!(text, ": {}", Words(usual)));
    for (end, direction) in ends.iter().zip(&config.directions) {
        if usual != Some(direction) {
            let _ = write!(text, "\n{}: {}", scenario.nodes[*end].name, Words(direction));
        }
    }
    text + &pairs(&config.pairs, ends, scenario)
}

/// The pairs of stations whose loss differs, a line each.
fn pairs(pairs: &[PairLoss], ends: &[NodeId], scenario: &Scenario) -> String {
    let line = |pair: &PairLoss| {
        let [from, to] = [pair.from, pair.to].map(|end| &scenario.nodes[ends[end]].name);
        format!("\n{from} to {to}: loss {}", loss(&pair.loss))
    };
    pairs.iter().map(line).collect()
}

fn point_to_point(config: &Config) -> String {
    let half = if config.duplex == Duplex::Half { ", half duplex" } else { "" };
    if config.forward == config.backward {
        format!("{}{half}", Words(&config.forward))
    } else {
        format!("forward:  {}{half}\nbackward: {}", Words(&config.forward), Words(&config.backward))
    }
}

/// All values of one direction, including defaults that matter.
struct Words<'a>(&'a Direction);

impl Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = self.0;
        write!(f, "{}, delay {}, loss {}", rate(direction.rate), direction.delay, loss(&direction.loss))?;
        if direction.jitter != Jitter::None {
            let order = if direction.reorder { "reordering" } else { "in order" };
            write!(f, ", jitter {} {order}", jitter(direction.jitter))?;
        }
        if direction.duplicate.get() > 0.0 {
            write!(f, ", {} duplicated", direction.duplicate)?;
        }
        if direction.corrupt.get() > 0.0 {
            write!(f, ", {} corrupted", direction.corrupt)?;
        }
        write!(f, ", queue {}, MTU {}", queue(direction.queue), direction.mtu)
    }
}

pub(super) fn rate(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "unlimited rate".to_owned(), |rate| rate.to_string())
}

pub(super) fn loss(loss: &Loss) -> String {
    let mean = || format!("{} on average", Percent(mean_loss(loss)));
    match loss {
        Loss::None => "none".to_owned(),
        Loss::Independent(share) => share.to_string(),
        Loss::GilbertElliott { p, r, k, h } => {
            format!("Gilbert-Elliott (p {p}, r {r}, k {k}, h {h}; {})", mean())
        }
        Loss::FourState { p13, p31, p32, p23, p14 } => {
            format!("four-state (p13 {p13}, p31 {p31}, p32 {p32}, p23 {p23}, p14 {p14}; {})", mean())
        }
        Loss::Trace(trace) => format!("a trace of {} ({})", counted(trace.len(), "frame"), mean()),
    }
}

pub(super) fn jitter(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => "none".to_owned(),
        Jitter::Uniform(width) => format!("±{width} uniform"),
        Jitter::Normal(width) => format!("{width} normal"),
    }
}

pub(super) fn queue(queue: Queue) -> String {
    let full = |limit| match limit {
        QueueLimit::Packets(packets) => counted(packets as usize, "packet"),
        QueueLimit::Bytes(bytes) => bytes.to_string(),
    };
    match queue {
        Queue::DropTail { limit } => full(limit),
        Queue::CoDel { limit, target, interval } => {
            format!("CoDel (target {target}, interval {interval}, at most {})", full(limit))
        }
    }
}

/// A share as a percentage of three digits.
struct Percent(f64);

impl Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = format!("{:.3}", self.0 * 100.0);
        write!(f, "{} %", percent.trim_end_matches('0').trim_end_matches('.'))
    }
}
