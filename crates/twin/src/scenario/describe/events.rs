//! The events, in the order of time.

use std::fmt::{self, Write};

use hopcast_core::Instant;
use hopcast_link::Change;

use super::super::model::{Action, Event, Scenario};
use super::links::{jitter, loss, queue, rate};
use super::{MAX_LISTED, names_of, shortened};

pub(super) fn write_events(out: &mut String, scenario: &Scenario) -> fmt::Result {
    if scenario.events.is_empty() {
        return Ok(());
    }
    // One event of the file may change many links: these are one line again.
    let mut lines: Vec<(Instant, String, Vec<&str>)> = Vec::new();
    for Event { at, action } in &scenario.events {
        let (what, link) = match action {
            Action::Link { link, from, change } => {
                let link = &scenario.links[*link];
                let name = |end: usize| &scenario.nodes[link.ends[end]].name;
                let from = from.map(|end| format!(" from {}", name(end))).unwrap_or_default();
                let to = match change {
                    Change::LossTo(to, _) => format!(" to {}", name(*to)),
                    _ => String::new(),
                };
                (format!("{}{from}{to}", changed(change)), Some(link.name.as_str()))
            }
            Action::Start(flow) => (format!("flow {} starts", scenario.flows[*flow].name), None),
            Action::Stop(flow) => (format!("flow {} stops", scenario.flows[*flow].name), None),
            Action::Restart(node) => (format!("{} begins anew", scenario.nodes[*node].name), None),
            Action::Service { service, on, what } => {
                let service = &scenario.services[*service];
                let at = if on.len() == service.on.len() {
                    String::new()
                } else {
                    format!(" on {}", names_of(scenario, on))
                };
                (format!("{} {what}{at}", service.name), None)
            }
            Action::Join { group, node } => {
                (format!("{} joins {}", scenario.nodes[*node].name, scenario.groups[*group].name), None)
            }
            Action::Leave { group, node } => {
                (format!("{} leaves {}", scenario.nodes[*node].name, scenario.groups[*group].name), None)
            }
        };
        let same = lines.iter_mut().rev().take_while(|line| line.0 == *at).find(|line| line.1 == what);
        match same {
            Some(line) => line.2.extend(link),
            None => lines.push((*at, what, link.into_iter().collect())),
        }
    }
    writeln!(out, "\nEvents: {}", lines.len())?;
    for (at, what, links) in lines.iter().take(MAX_LISTED) {
        let links = match links.len() {
            0 => String::new(),
            all if all == scenario.links.len() => " on all links".to_owned(),
            _ => format!(" on {}", shortened(links)),
        };
        let late = if *at > Instant::ZERO + scenario.duration { " (after the end)" } else { "" };
        writeln!(out, "  {at}: {what}{links}{late}")?;
    }
    match lines.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

fn changed(change: &Change) -> String {
    match change {
        Change::Rate(new) => rate(*new),
        Change::Delay(delay) => format!("delay {delay}"),
        Change::Jitter(new) => format!("jitter {}", jitter(*new)),
        Change::Loss(new) | Change::LossTo(_, new) => format!("loss {}", loss(new)),
        Change::Corrupt(share) => format!("{share} corrupted"),
        Change::Queue(new) => format!("queue {}", queue(*new)),
        Change::Mtu(mtu) => format!("MTU {mtu}"),
        Change::Reorder(true) => "reordering".to_owned(),
        Change::Reorder(false) => "in order".to_owned(),
        Change::Duplicate(share) => format!("{share} duplicated"),
        Change::Down => "down".to_owned(),
        Change::Up => "up".to_owned(),
    }
}
