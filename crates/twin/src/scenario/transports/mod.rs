//! Transports, what they may be stacked on, and their variants.

use std::collections::BTreeMap;
use std::fmt;

use hopcast_core::Duration;
use hopcast_peers::tcp;

use super::decode::{
    Fields, check_name, did_you_mean, duration, entries, flag, listed, one_or_list, size, some_duration,
    whole,
};
use super::diagnostic::Diagnostic;
use super::model::Layer;
use super::yaml::{Kind, Node};

/// A transport that scenarios can name.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// Its name in `over`.
    pub name: &'static str,
    /// What it offers to what stands on it.
    pub offers: Port,
    /// What it needs below it.
    pub needs: Port,
    /// What it is, in one line.
    pub about: &'static str,
}

/// What crosses between two layers of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// IP packets.
    Packet,
    /// UDP datagrams.
    Datagram,
    /// Bytes in order.
    Stream,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packet => "packets",
            Self::Datagram => "datagrams",
            Self::Stream => "a stream",
        })
    }
}

const PROTOCOLS: [Protocol; 4] = [
    Protocol {
        name: "udp",
        offers: Port::Datagram,
        needs: Port::Packet,
        about: "datagrams as they are; bulk and files are paced at the first link's rate (RFC 768)",
    },
    Protocol {
        name: "tcp-cubic",
        offers: Port::Stream,
        needs: Port::Packet,
        about: "TCP with CUBIC and selective acknowledgements, as Linux sets it (RFC 9293, 9438, 2018)",
    },
    Protocol {
        name: "tcp-bbr",
        offers: Port::Stream,
        needs: Port::Packet,
        about: "TCP with BBR version 1 and pacing, as Linux sets it",
    },
    Protocol {
        name: "tunnel",
        offers: Port::Packet,
        needs: Port::Datagram,
        about: "IP packets inside the datagrams of the layer below, or of the host",
    },
];

/// More layers than this are a slip.
const MOST_LAYERS: usize = 8;
const TCP_OPTIONS: [&str; 6] =
    ["initial-window", "sack", "min-rto", "delayed-ack", "receive-buffer", "send-buffer"];

/// All transports, in the order in which to show them.
pub fn protocols() -> Vec<Protocol> {
    PROTOCOLS.to_vec()
}

/// Names given to transports with options, and to stacks.
#[derive(Default)]
pub(crate) struct Variants(BTreeMap<String, Vec<Named>>);

/// A layer with what its protocol is called, for messages.
#[derive(Clone)]
struct Named {
    protocol: &'static Protocol,
    layer: Layer,
}

/// What a flow's `over` says.
pub(crate) struct Stack {
    /// What tables show.
    pub(crate) protocol: String,
    /// From the top down; the lowest stands on the host's packets.
    pub(crate) layers: Vec<Layer>,
    /// What the application gets.
    pub(crate) offers: Port,
}

impl Variants {
    pub(crate) fn of(node: Option<&Node>) -> Result<Self, Diagnostic> {
        let mut variants = Self::default();
        let Some(node) = node else { return Ok(variants) };
        for entry in entries(node, "`variants`")? {
            let name = &entry.key;
            check_name(name, "variants", &entry.key_span)?;
            if PROTOCOLS.iter().any(|protocol| protocol.name == name) {
                return Err(entry
                    .key_span
                    .error(format!("a variant needs a name of its own: `{name}` is a transport")));
            }
            let mut layers = Vec::new();
            for item in one_or_list(&entry.value) {
                // A variant is made of transports: the others are not known yet, and need not be.
                layers.extend(Self::default().layers(item)?);
            }
            check(&layers, &entry.value)?;
            variants.0.insert(name.clone(), layers);
        }
        Ok(variants)
    }

    /// The stack that `over` names.
    pub(crate) fn stack(&self, node: &Node) -> Result<Stack, Diagnostic> {
        let (mut layers, mut names) = (Vec::new(), Vec::new());
        for item in one_or_list(node) {
            layers.extend(self.layers(item)?);
            names.push(match &item.kind {
                Kind::Scalar(name) => name.clone(),
                Kind::Map(entries) => entries.iter().map(|entry| entry.key.as_str()).collect(),
                Kind::List(_) => String::new(),
            });
        }
        check(&layers, node)?;
        let (Some(top), Some(bottom)) = (layers.first(), layers.last()) else {
            return Err(node.error("`over`: expected a transport, found an empty list"));
        };
        let offers = top.protocol.offers;
        if offers == Port::Packet {
            return Err(node.error(format!(
                "`over`: `{}` offers packets, which no application sends: put a transport such as `tcp-cubic` on top",
                top.protocol.name
            )));
        }
        // The host's own datagrams are UDP's.
        let udp = (bottom.protocol.needs == Port::Datagram).then_some(Layer::Udp);
        let layers = layers.into_iter().map(|named| named.layer).chain(udp).collect();
        Ok(Stack { protocol: names.join("/"), layers, offers })
    }

    /// The layers that one element stands for: `udp`, a variant's name, `tcp-cubic: { … }`.
    fn layers(&self, node: &Node) -> Result<Vec<Named>, Diagnostic> {
        let (name, span, options) = match &node.kind {
            Kind::Scalar(name) if !name.is_empty() => (name, &node.span, None),
            Kind::Map(entries) if entries.len() == 1 => {
                (&entries[0].key, &entries[0].key_span, Some(&entries[0].value))
            }
            Kind::Scalar(_) | Kind::Map(_) | Kind::List(_) => {
                return Err(node.error(format!(
                    "expected a transport, such as `udp` or `tcp-cubic: {{ min-rto: 1s }}`, found {}",
                    node.found()
                )));
            }
        };
        if let (Some(layers), None) = (self.0.get(name), options) {
            return Ok(layers.clone());
        }
        let Some(protocol) = PROTOCOLS.iter().find(|protocol| protocol.name == name) else {
            let names = PROTOCOLS.iter().map(|protocol| protocol.name);
            let all: Vec<&str> = names.chain(self.0.keys().map(String::as_str)).collect();
            let hint = did_you_mean(name, all.iter().copied());
            return Err(
                span.error(format!("there is no transport `{name}`{hint} (transports: {})", all.join(", ")))
            );
        };
        let congestion = match protocol.name {
            "tcp-cubic" => Some(tcp::Congestion::Cubic),
            "tcp-bbr" => Some(tcp::Congestion::Bbr),
            _ => None,
        };
        let layer = match congestion {
            Some(congestion) => Layer::Tcp(tcp_config(congestion, options, name)?),
            None => {
                if options.is_some_and(|options| !matches!(entries(options, name), Ok([]))) {
                    return Err(span.error(format!("`{name}` has no options: write `{name}`")));
                }
                if protocol.name == "udp" { Layer::Udp } else { Layer::Tunnel }
            }
        };
        Ok(vec![Named { protocol, layer }])
    }
}

/// Whether each layer finds below it what it needs. The host offers packets, and datagrams too.
fn check(layers: &[Named], node: &Node) -> Result<(), Diagnostic> {
    if layers.len() > MOST_LAYERS {
        return Err(
            node.error(format!("a stack has at most {MOST_LAYERS} layers, this one has {}", layers.len()))
        );
    }
    for pair in layers.windows(2) {
        let (upper, lower) = (pair[0].protocol, pair[1].protocol);
        if upper.needs == lower.offers {
            continue;
        }
        let fitting: Vec<&str> = PROTOCOLS
            .iter()
            .filter(|between| between.offers == upper.needs && between.needs == lower.offers)
            .map(|between| between.name)
            .collect();
        let hint = if fitting.is_empty() {
            String::new()
        } else {
            format!("; between them fits {}", listed(&fitting))
        };
        return Err(node.error(format!(
            "`{}` needs {} below it, but `{}` offers {}{hint}",
            upper.name, upper.needs, lower.name, lower.offers
        )));
    }
    Ok(())
}

fn tcp_config(
    congestion: tcp::Congestion,
    options: Option<&Node>,
    name: &str,
) -> Result<tcp::Config, Diagnostic> {
    let mut config = tcp::Config { congestion, ..tcp::Config::default() };
    let Some(options) = options else { return Ok(config) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &TCP_OPTIONS)?;
    let buffer = |node: &Node, key: &str| size(node, key, 2048..=1 << 30);
    if let Some(window) = fields.read("initial-window", |node, key| whole(node, key, 1..=1000))? {
        config.initial_window = u32::try_from(window).unwrap_or(1000);
    }
    config.sack = fields.read("sack", flag)?.unwrap_or(config.sack);
    config.min_rto = fields.read("min-rto", some_duration)?.unwrap_or(config.min_rto);
    config.delayed_ack = fields.read("delayed-ack", delayed_ack)?.unwrap_or(config.delayed_ack);
    config.receive_buffer = fields.read("receive-buffer", buffer)?.unwrap_or(config.receive_buffer);
    config.send_buffer = fields.read("send-buffer", buffer)?.unwrap_or(config.send_buffer);
    Ok(config)
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
