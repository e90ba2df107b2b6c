//! What may be said about each transport beside its name.

use std::ops::RangeInclusive;

use hopcast_coded::bats::{self, BatchSize, Delivery};
use hopcast_coded::franc;
use hopcast_core::{Bytes, Duration, Fraction};
use hopcast_peers::{hop_arq, kcp, quic, tcp};

use crate::scenario::model::{Layer, Scenario};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, choice, duration, entries, flag, share, size, some_duration, whole};
use hopcast_config::yaml::Node;

const BRTP_OPTIONS: [&str; 7] =
    ["feedback", "batch-size", "block", "window", "congestion-control", "idle-repair", "stream-timeout"];
const BTP_OPTIONS: [&str; 8] =
    ["feedback", "batch-size", "block", "window", "congestion-control", "idle-repair", "deadline", "rounds"];
/// The deadlines that BTP can tell its nodes, in whole milliseconds.
const DEADLINES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(65);
const FRANC_OPTIONS: [&str; 8] =
    ["plan", "overshoot", "field", "block", "window", "timeout", "losses", "helper"];
/// What to send by expected deficit, or by the paper's budgets, with the paper's other parameters.
const PLANS: [&str; 2] = ["deficit", "budget"];
const KCP_OPTIONS: [&str; 4] = ["send-window", "receive-window", "interval", "resend"];
const QUIC_OPTIONS: [&str; 2] = ["receive-window", "idle-timeout"];
const HOP_ARQ_OPTIONS: [&str; 2] = ["receive-buffer", "send-buffer"];
const TCP_OPTIONS: [&str; 6] =
    ["initial-window", "sack", "min-rto", "delayed-ack", "receive-buffer", "send-buffer"];

pub(super) fn udp(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    no_options(name, options)?;
    Ok(Layer::Udp)
}

pub(super) fn tunnel(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    no_options(name, options)?;
    Ok(Layer::Tunnel)
}

pub(super) fn tcp_cubic(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    tcp(tcp::Congestion::Cubic, name, options)
}

pub(super) fn tcp_bbr(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    tcp(tcp::Congestion::Bbr, name, options)
}

pub(super) fn brtp(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    reliable(name, options).map(Layer::Bats)
}

pub(super) fn bats_proxy(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    reliable(name, options).map(Layer::Proxy)
}

fn reliable(name: &'static str, options: Option<&Node>) -> Result<bats::Config, Diagnostic> {
    let Some(options) = options else { return Ok(bats::Config::default()) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &BRTP_OPTIONS)?;
    let mut config = bats_config(&fields)?;
    config.stream_timeout = fields.read("stream-timeout", some_duration)?.unwrap_or(config.stream_timeout);
    Ok(config)
}

pub(super) fn btp(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    let usual = bats::Config { delivery: Delivery::DEADLINE, ..bats::Config::default() };
    let Some(options) = options else { return Ok(Layer::Bats(usual)) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &BTP_OPTIONS)?;
    let mut config = bats_config(&fields)?;
    let Delivery::Deadline { mut after, mut fixed, mut rounds } = usual.delivery else {
        return Ok(Layer::Bats(usual));
    };
    if let Some(node) = fields.get("deadline") {
        (after, fixed) = (some_duration(node, "deadline")?, true);
        if !DEADLINES.contains(&after) {
            let found = node.found();
            return Err(node.error(format!("`deadline`: expected 1 ms to 65 s, found {found}")));
        }
    }
    if let Some(found) = fields.read("rounds", |node, key| whole(node, key, 0..=100))? {
        rounds = found as u8;
    }
    config.delivery = Delivery::Deadline { after, fixed, rounds };
    Ok(Layer::Bats(config))
}

fn bats_config(fields: &Fields<'_>) -> Result<bats::Config, Diagnostic> {
    let feedback = fields.read("feedback", |node, key| Ok(choice(node, key, &["ranks", "none"])?.0))?;
    let mut config = if feedback == Some("none") { bats::Config::strict() } else { bats::Config::default() };
    if let Some(node) = fields.get("batch-size") {
        config.batch = batch_size(node)?;
    }
    let symbols = config.batch.symbols() as u64;
    if let Some(node) = fields.get("block") {
        let block = whole(node, "block", symbols..=8192)?;
        if block % symbols != 0 {
            return Err(node.error(format!(
                "`block`: expected a multiple of the batch size {symbols}, found `{block}`"
            )));
        }
        config.block = block as u16;
    }
    if let Some(window) = fields.read("window", |node, key| whole(node, key, 4..=2000))? {
        config.window = window as u16;
    }
    if let Some(node) = fields.get("congestion-control") {
        config.congestion_control = flag(node, "congestion-control")?;
        if !config.congestion_control && config.feedback == bats::Feedback::None {
            return Err(node.error("`congestion-control`: without rank feedback it is always on"));
        }
    }
    config.idle_repair = fields.read("idle-repair", flag)?.unwrap_or(config.idle_repair);
    Ok(config)
}

pub(super) fn franc(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    let Some(options) = options else { return Ok(Layer::Franc(franc::Config::default())) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &FRANC_OPTIONS)?;
    let budget = fields
        .get("plan")
        .map(|node| choice(node, "plan", &PLANS))
        .transpose()?
        .is_some_and(|(plan, ..)| plan == "budget");
    let mut config = if budget { franc::Config::paper() } else { franc::Config::default() };
    if let franc::Plan::Budget { overshoot } = &mut config.plan {
        *overshoot = fields.read("overshoot", share)?.map_or(*overshoot, |share| 1.0 + share.get());
    } else if let Some(node) = fields.get("overshoot") {
        return Err(node.error("`overshoot`: only `plan: budget` has one"));
    }
    let small = |node: &Node, key: &str, most: u64| whole(node, key, 1..=most).map(|found| found as u8);
    config.block = fields.read("block", |node, key| small(node, key, 255))?.unwrap_or(config.block);
    config.window = fields.read("window", |node, key| small(node, key, 64))?.unwrap_or(config.window);
    config.timeout = fields.read("timeout", some_duration)?.unwrap_or(config.timeout);
    if let Some(losses) = fields.get("losses") {
        let fields = Fields::of(losses, "`losses`", &["e1", "e2", "e3"])?;
        let loss = |key| Ok::<f64, Diagnostic>(fields.read(key, share)?.map_or(0.0, Fraction::get));
        let losses = franc::Losses { e1: loss("e1")?, e2: loss("e2")?, e3: loss("e3")? };
        config.links = franc::Links::Given(losses);
    }
    let field = match fields.get("field") {
        None => config.field,
        Some(node) => match whole(node, "field", 2..=256)? {
            2 => franc::Field::Binary,
            256 => franc::Field::Binary8,
            found => return Err(node.error(format!("`field`: expected 2 or 256, found `{found}`"))),
        },
    };
    // Both make room in the frame for what they need.
    config = config.over(field);
    if fields.read("helper", flag)?.unwrap_or(false) {
        config = config.with_helper();
    }
    config.validate().map_err(|error| options.error(format!("`{name}`: {error}")))?;
    Ok(Layer::Franc(config))
}

/// RFC 9426, section 4.2.
fn batch_size(node: &Node) -> Result<BatchSize, Diagnostic> {
    let found = whole(node, "batch-size", 1..=1000)?;
    let known = BatchSize::ALL.into_iter().find(|size| size.symbols() as u64 == found);
    known.ok_or_else(|| node.error(format!("`batch-size`: expected 4, 8, 16 or 32, found `{found}`")))
}

/// An empty map says nothing, and is allowed.
fn no_options(name: &str, options: Option<&Node>) -> Result<(), Diagnostic> {
    match options {
        Some(node) if !matches!(entries(node, name), Ok([])) => {
            Err(node.error(format!("`{name}` has no options: write `{name}`")))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn tcp_reno(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    tcp(tcp::Congestion::Reno, name, options)
}

pub(super) fn tcp_vegas(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    tcp(tcp::Congestion::Vegas, name, options)
}

pub(super) fn kcp(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    kcp_config(kcp::Config::FAST3, name, options)
}

pub(super) fn kcp_fec(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    kcp_config(kcp::Config::FAST3_FEC, name, options)
}

fn kcp_config(
    mut config: kcp::Config,
    name: &'static str,
    options: Option<&Node>,
) -> Result<Layer, Diagnostic> {
    let Some(options) = options else { return Ok(Layer::Kcp(config)) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &KCP_OPTIONS)?;
    let window =
        |least| move |node: &Node, key: &str| whole(node, key, least..=32_768).map(|packets| packets as u16);
    config.send_window = fields.read("send-window", window(1))?.unwrap_or(config.send_window);
    config.receive_window = fields.read("receive-window", window(128))?.unwrap_or(config.receive_window);
    if let Some(node) = fields.get("interval") {
        let interval = duration(node, "interval")?;
        if !(Duration::from_millis(10)..=Duration::from_secs(5)).contains(&interval) {
            return Err(node.error(format!("`interval`: expected 10 ms to 5 s, found {}", node.found())));
        }
        config.interval = interval;
    }
    if let Some(resend) = fields.read("resend", |node, key| whole(node, key, 0..=100))? {
        config.resend = resend as u32;
    }
    Ok(Layer::Kcp(config))
}

pub(super) fn quic(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    quic_config(quic::Congestion::Cubic, name, options)
}

pub(super) fn quic_bbr(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    quic_config(quic::Congestion::Bbr, name, options)
}

fn quic_config(
    congestion: quic::Congestion,
    name: &'static str,
    options: Option<&Node>,
) -> Result<Layer, Diagnostic> {
    let mut config = quic::Config { congestion, ..quic::Config::default() };
    let Some(options) = options else { return Ok(Layer::Quic(config)) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &QUIC_OPTIONS)?;
    let window = |node: &Node, key: &str| size(node, key, 2048..=1 << 30);
    config.receive_window = fields.read("receive-window", window)?.unwrap_or(config.receive_window);
    config.idle_timeout = fields.read("idle-timeout", some_duration)?.unwrap_or(config.idle_timeout);
    Ok(Layer::Quic(config))
}

pub(super) fn split_bbr(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    match tcp(tcp::Congestion::Bbr, name, options)? {
        Layer::Tcp(config) => Ok(Layer::Split(config)),
        layer => Ok(layer),
    }
}

fn tcp(congestion: tcp::Congestion, name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    let mut config = tcp::Config { congestion, ..tcp::Config::default() };
    let Some(options) = options else { return Ok(Layer::Tcp(config)) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &TCP_OPTIONS)?;
    if let Some(window) = fields.read("initial-window", |node, key| whole(node, key, 1..=1000))? {
        config.initial_window = u32::try_from(window).unwrap_or(1000);
    }
    config.sack = fields.read("sack", flag)?.unwrap_or(config.sack);
    config.min_rto = fields.read("min-rto", some_duration)?.unwrap_or(config.min_rto);
    config.delayed_ack = fields.read("delayed-ack", delayed_ack)?.unwrap_or(config.delayed_ack);
    config.receive_buffer = fields.read("receive-buffer", buffer)?.unwrap_or(config.receive_buffer);
    config.send_buffer = fields.read("send-buffer", buffer)?.unwrap_or(config.send_buffer);
    Ok(Layer::Tcp(config))
}

/// Which option of TCP a flow sets, for the first of a scenario's flows that sets one: in virtual time it has a TCP of its own,
/// but a kernel's TCP is as the kernel is set up. One line; `None` if there is none.
pub fn needs_virtual_time(scenario: &Scenario) -> Option<String> {
    let usual = tcp::Config::default();
    scenario.flows.iter().find_map(|flow| {
        let set = flow.over.iter().find_map(|layer| {
            let (Layer::Tcp(config) | Layer::Split(config)) = layer else { return None };
            let changed = [
                config.initial_window != usual.initial_window,
                config.sack != usual.sack,
                config.min_rto != usual.min_rto,
                config.delayed_ack != usual.delayed_ack,
                config.receive_buffer != usual.receive_buffer,
                config.send_buffer != usual.send_buffer,
            ];
            TCP_OPTIONS.into_iter().zip(changed).find_map(|(name, changed)| changed.then_some(name))
        })?;
        Some(format!("flow `{}`: `{set}` cannot be set on the kernel's TCP, only in virtual time", flow.name))
    })
}

pub(super) fn hop_arq(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    let mut config = hop_arq::Config::default();
    let Some(options) = options else { return Ok(Layer::HopArq(config)) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &HOP_ARQ_OPTIONS)?;
    config.receive_buffer = fields.read("receive-buffer", buffer)?.unwrap_or(config.receive_buffer);
    config.send_buffer = fields.read("send-buffer", buffer)?.unwrap_or(config.send_buffer);
    Ok(Layer::HopArq(config))
}

fn buffer(node: &Node, key: &str) -> Result<Bytes, Diagnostic> {
    size(node, key, 2048..=1 << 30)
}

/// RFC 9293 forbids to hold an acknowledgement back for longer than half a second.
fn delayed_ack(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let delay = duration(node, key)?;
    if delay > Duration::from_millis(500) {
        return Err(
            node.error(format!("`{key}`: expected at most 500 ms (RFC 9293), found {}", node.found()))
        );
    }
    Ok(delay)
}
