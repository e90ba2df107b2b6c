//! The values of links in a scenario's notation, which is read back as the same values.

use hopcast_link::{
    Config, Csma, Direction, Duplex, Jitter, Loss, Mac, MediumConfig, PairLoss, Queue, QueueLimit, Rts,
    SwitchConfig,
};
use hopcast_stack::network::Prefix;

/// The keys of a link that differ from the default, with their values.
pub(super) fn link(config: &Config) -> Vec<(&'static str, String)> {
    let mut keys = direction(&config.forward, &Direction::default());
    if config.duplex == Duplex::Half {
        keys.push(("duplex", "half".to_owned()));
    }
    if config.backward != config.forward {
        let differs = direction(&config.backward, &config.forward);
        let differs: Vec<String> = differs.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        keys.push(("backward", format!("{{ {} }}", differs.join(", "))));
    }
    keys
}

/// The prefixes of a link.
pub(super) fn prefixes(prefixes: &[Prefix]) -> Option<(&'static str, String)> {
    // In quotes, since those of IPv6 have colons.
    let written: Vec<String> = prefixes.iter().map(|prefix| format!("\"{prefix}\"")).collect();
    (!written.is_empty()).then(|| ("prefix", format!("[{}]", written.join(", "))))
}

/// The keys of a direction that differ from `base`, with their values. A trace of losses cannot be written as a value
/// and is left out.
pub(super) fn direction(direction: &Direction, base: &Direction) -> Vec<(&'static str, String)> {
    let Direction { rate, queue, loss, delay, jitter, reorder, duplicate, corrupt, mtu } = direction;
    let rate_text = rate.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string());
    let mut keys = Vec::new();
    let mut key = |key, differs: bool, value: Option<String>| {
        keys.extend(value.filter(|_| differs).map(|value| (key, value)));
    };
    key("rate", *rate != base.rate, Some(rate_text));
    key("delay", *delay != base.delay, Some(delay.to_string()));
    key("loss", *loss != base.loss, Some(loss_text(loss)));
    key("jitter", *jitter != base.jitter, Some(jitter_text(*jitter)));
    key("reorder", *reorder != base.reorder, Some(reorder.to_string()));
    key("duplicate", *duplicate != base.duplicate, Some(duplicate.to_string()));
    key("corrupt", *corrupt != base.corrupt, Some(corrupt.to_string()));
    key("queue", *queue != base.queue, Some(queue_text(*queue)));
    key("mtu", *mtu != base.mtu, Some(mtu.to_string()));
    keys
}

fn loss_text(loss: &Loss) -> String {
    match loss {
        Loss::None | Loss::Trace(_) => "none".to_owned(),
        Loss::Independent(share) => share.to_string(),
        Loss::GilbertElliott { p, r, k, h } => {
            format!("{{ gilbert-elliott: {{ p: {p}, r: {r}, k: {k}, h: {h} }} }}")
        }
        Loss::FourState { p13, p31, p32, p23, p14 } => {
            format!("{{ four-state: {{ p13: {p13}, p31: {p31}, p32: {p32}, p23: {p23}, p14: {p14} }} }}")
        }
    }
}

/// The keys of a medium, whose stations have these names.
pub(super) fn medium(config: &MediumConfig, stations: &[&str]) -> Vec<(&'static str, String)> {
    let mut keys = direction(&config.direction, &Direction::default());
    if let Mac::Csma(csma) = &config.mac {
        let Csma { slot, sifs, difs, cw_min, cw_max, retries, overhead, ack, channel, rts } = csma;
        let channel = loss_text(channel);
        let rts = rts.map(|Rts { threshold, rts, cts }| {
            format!(", rts: {threshold}, rts-time: {rts}, cts-time: {cts}")
        });
        let rts = rts.unwrap_or_default();
        keys.push((
            "mac",
            format!(
                "{{ csma: {{ slot: {slot}, sifs: {sifs}, difs: {difs}, cw-min: {cw_min}, cw-max: {cw_max}, \
                 retries: {retries}, overhead: {overhead}, ack: {ack}, channel-loss: {channel}{rts} }} }}"
            ),
        ));
    }
    keys.extend(pairs(&config.pairs, stations));
    if let Some(hears) = &config.hears {
        let pair =
            |&(from, to): &(usize, usize)| format!("{{ from: {}, to: {} }}", stations[from], stations[to]);
        let pairs: Vec<String> = hears.iter().map(pair).collect();
        keys.push(("hears", format!("[{}]", pairs.join(", "))));
    }
    keys
}

/// The keys of a switch, whose stations have these names.
pub(super) fn switch(config: &SwitchConfig, stations: &[&str]) -> Vec<(&'static str, String)> {
    let mut keys = vec![("kind", "switch".to_owned())];
    let Some(first) = config.directions.first() else { return keys };
    keys.extend(direction(first, &Direction::default()));
    let own = config.directions.iter().zip(stations).filter(|(one, _)| *one != first).map(|(one, name)| {
        let keys = direction(one, first);
        let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        format!("{name}: {{ {} }}", keys.join(", "))
    });
    let own: Vec<String> = own.collect();
    if !own.is_empty() {
        keys.push(("stations", format!("{{ {} }}", own.join(", "))));
    }
    keys.extend(pairs(&config.pairs, stations));
    keys
}

fn pairs(pairs: &[PairLoss], stations: &[&str]) -> Option<(&'static str, String)> {
    let pair = |pair: &PairLoss| {
        let (from, to, loss) = (stations[pair.from], stations[pair.to], loss_text(&pair.loss));
        format!("{{ from: {from}, to: {to}, loss: {loss} }}")
    };
    let written: Vec<String> = pairs.iter().map(pair).collect();
    (!written.is_empty()).then(|| ("pairs", format!("[{}]", written.join(", "))))
}

fn jitter_text(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => "none".to_owned(),
        Jitter::Uniform(width) => width.to_string(),
        Jitter::Normal(width) => format!("{{ normal: {width} }}"),
    }
}

fn queue_text(queue: Queue) -> String {
    let limit_text = |limit| match limit {
        QueueLimit::Packets(packets) => format!("{packets} packets"),
        QueueLimit::Bytes(bytes) => bytes.to_string(),
    };
    match queue {
        Queue::DropTail { limit } => limit_text(limit),
        Queue::CoDel { limit, target, interval } => {
            format!("{{ codel: {{ limit: {}, target: {target}, interval: {interval} }} }}", limit_text(limit))
        }
    }
}
