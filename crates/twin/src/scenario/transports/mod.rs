//! Transports, what they may be stacked on, and their variants.

mod options;

use std::collections::BTreeMap;
use std::fmt;

use super::model::Layer;
use super::programs::{kcptun_layer, sends_packets};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{check_name, did_you_mean_one_of, entries, one_or_list};
use hopcast_config::yaml::{Kind, Node};

pub use options::needs_virtual_time;

/// A transport that scenarios can name.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// Its name in `over`.
    pub name: &'static str,
    /// What it offers to what stands on it.
    pub offers: Ports,
    /// What it needs below it.
    pub needs: Port,
    /// What it is, in one line.
    pub about: &'static str,
    /// The layer that its options make.
    layer: fn(&'static str, Option<&Node>) -> Result<Layer, Diagnostic>,
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
    /// Frames of one interface.
    Frame,
}

/// What a transport offers: one kind of port, or several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports(&'static [Port]);

impl Ports {
    /// Whether `port` is among them.
    pub fn has(self, port: Port) -> bool {
        self.0.contains(&port)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, port) in self.0.iter().enumerate() {
            write!(f, "{}{port}", if place > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packet => "packets",
            Self::Datagram => "datagrams",
            Self::Stream => "a stream",
            Self::Frame => "frames",
        })
    }
}

static PROTOCOLS: [Protocol; 17] = [
    Protocol {
        name: "udp",
        offers: Ports(&[Port::Datagram]),
        needs: Port::Packet,
        about: "datagrams as they are; bulk and files are paced at the first link's rate (RFC 768)",
        layer: options::udp,
    },
    Protocol {
        name: "tcp-cubic",
        offers: Ports(&[Port::Stream]),
        needs: Port::Packet,
        about: "TCP with CUBIC and selective acknowledgements, as Linux sets it (RFC 9293, 9438, 2018)",
        layer: options::tcp_cubic,
    },
    Protocol {
        name: "tcp-bbr",
        offers: Ports(&[Port::Stream]),
        needs: Port::Packet,
        about: "TCP with BBR version 1 and pacing, as Linux sets it",
        layer: options::tcp_bbr,
    },
    Protocol {
        name: "tcp-reno",
        offers: Ports(&[Port::Stream]),
        needs: Port::Packet,
        about: "TCP with Reno's congestion control (RFC 5681) and selective acknowledgements",
        layer: options::tcp_reno,
    },
    Protocol {
        name: "tcp-vegas",
        offers: Ports(&[Port::Stream]),
        needs: Port::Packet,
        about: "TCP with Vegas, which reads congestion from round trips, and selective acknowledgements",
        layer: options::tcp_vegas,
    },
    Protocol {
        name: "split-bbr",
        offers: Ports(&[Port::Stream]),
        needs: Port::Packet,
        about: "TCP with BBR that ends at every node of the way and begins anew; must stand on the hosts",
        layer: options::split_bbr,
    },
    Protocol {
        name: "kcp",
        offers: Ports(&[Port::Stream]),
        needs: Port::Datagram,
        about: "KCP with kcptun's `fast3` settings: quick repeats, no congestion control",
        layer: options::kcp,
    },
    Protocol {
        name: "kcp-fec",
        offers: Ports(&[Port::Stream]),
        needs: Port::Datagram,
        about: "the same with kcptun's parity, 3 packets for 10",
        layer: options::kcp_fec,
    },
    Protocol {
        name: "kcptun",
        offers: Ports(&[Port::Stream]),
        needs: Port::Datagram,
        about: "a stream through real kcptuns at both ends: live runs only; `kcp` and `kcp-fec` are its models",
        layer: kcptun_layer,
    },
    Protocol {
        name: "quic",
        offers: Ports(&[Port::Stream]),
        needs: Port::Datagram,
        about: "QUIC with CUBIC and pacing, as quinn sets it (RFC 9000, 9002)",
        layer: options::quic,
    },
    Protocol {
        name: "quic-bbr",
        offers: Ports(&[Port::Stream]),
        needs: Port::Datagram,
        about: "the same with the BBR version 1 of `tcp-bbr`",
        layer: options::quic_bbr,
    },
    Protocol {
        name: "hop-arq",
        offers: Ports(&[Port::Stream]),
        needs: Port::Datagram,
        about: "selective repeat on every hop of the way, in order at the end",
        layer: options::hop_arq,
    },
    Protocol {
        name: "btp",
        offers: Ports(&[Port::Datagram]),
        needs: Port::Datagram,
        about: "datagrams over relays that recode (BATS), each within a deadline or not at all",
        layer: options::btp,
    },
    Protocol {
        name: "brtp",
        offers: Ports(&[Port::Stream, Port::Datagram]),
        needs: Port::Datagram,
        about: "all of a stream, or of datagrams, in order, over relays that recode (BATS)",
        layer: options::brtp,
    },
    Protocol {
        name: "bats-proxy",
        offers: Ports(&[Port::Stream, Port::Packet]),
        needs: Port::Datagram,
        about: "TCP connections ended at the edges and carried by brtp; under a TCP it ends that one's",
        layer: options::bats_proxy,
    },
    Protocol {
        name: "franc",
        offers: Ports(&[Port::Packet]),
        needs: Port::Frame,
        about: "packets coded over a shared medium, with a helper that overhears if there is one",
        layer: options::franc,
    },
    Protocol {
        name: "tunnel",
        offers: Ports(&[Port::Packet]),
        needs: Port::Datagram,
        about: "IP packets inside the datagrams of the layer below, or of the host",
        layer: options::tunnel,
    },
];

/// In `over`, the host's own packets, for `ping`: no transport at all.
const HOST: &str = "ip";
/// More layers than this are a slip.
const MOST_LAYERS: usize = 8;

/// All transports, in the order in which to show them.
pub fn protocols() -> Vec<Protocol> {
    PROTOCOLS.to_vec()
}

/// One transport with its options, as `over` writes it.
pub fn layer(node: &Node) -> Result<Layer, Diagnostic> {
    let mut layers = Variants::default().layers(node)?;
    layers.pop().map(|named| named.layer).ok_or_else(|| node.error("expected a transport"))
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
    pub(crate) offers: Ports,
}

impl Stack {
    /// Whether an application can send what it offers: packets are sent by `ping` alone.
    pub(crate) fn carries_something(&self, over: &Node, app: &Node) -> Result<(), Diagnostic> {
        if self.offers != Ports(&[Port::Packet]) || sends_packets(app) {
            return Ok(());
        }
        // Where `tunnel, udp` is written as one name, its top is at fault.
        let top = self.layers.first().map_or(HOST, |layer| match layer {
            Layer::Tunnel => "tunnel",
            _ => "franc",
        });
        Err(over.error(format!(
            "`over`: `{top}` offers packets, which no application but `ping` sends: put a transport such as `tcp-cubic` on top"
        )))
    }
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
        if matches!(&node.kind, Kind::Scalar(name) if name == HOST) {
            return Ok(Stack {
                protocol: HOST.to_owned(),
                layers: Vec::new(),
                offers: Ports(&[Port::Packet]),
            });
        }
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
            let hint = did_you_mean_one_of(name, &all);
            return Err(
                span.error(format!("there is no transport `{name}`{hint} (transports: {})", all.join(", ")))
            );
        };
        let layer = (protocol.layer)(protocol.name, options)?;
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
        if matches!(pair[1].layer, Layer::Proxy(_)) && !matches!(pair[0].layer, Layer::Tcp(_)) {
            return Err(node.error(format!(
                "`over`: `{}` ends TCP connections, and `{}` makes none: use `tunnel` over `brtp`",
                lower.name, upper.name
            )));
        }
        if matches!(pair[0].layer, Layer::Split(_)) {
            return Err(node.error(format!(
                "`over`: `{}` ends at every node, so nothing can carry it inside: write it alone",
                upper.name
            )));
        }
        if matches!(pair[0].layer, Layer::Kcptun(_)) && !matches!(pair[1].layer, Layer::Udp) {
            return Err(node.error(format!(
                "`over`: `{}` is a program and uses the host's sockets, and `{}` is none of them: write it alone, or over \
                 `[udp, tunnel, …]`",
                upper.name, lower.name
            )));
        }
        if lower.offers.has(upper.needs) {
            continue;
        }
        let fitting: Vec<String> = PROTOCOLS
            .iter()
            .filter(|between| between.offers.has(upper.needs) && lower.offers.has(between.needs))
            .map(|between| format!("`{}`", between.name))
            .collect();
        let hint = if fitting.is_empty() {
            String::new()
        } else {
            format!("; between them fits {}", fitting.join(" or "))
        };
        return Err(node.error(format!(
            "`{}` needs {} below it, but `{}` offers {}{hint}",
            upper.name, upper.needs, lower.name, lower.offers
        )));
    }
    Ok(())
}
