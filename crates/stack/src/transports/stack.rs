//! Stacks of transports as `over` writes them, and their named variants.

use std::collections::BTreeMap;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{check_name, did_you_mean_one_of, entries, one_or_list};
use hopcast_config::yaml::{Kind, Node};

use super::{HOSTS_DATAGRAMS, TRANSPORTS, find};
use crate::deliveries;
use crate::group::DeliveryLayer;
use crate::transport::{Layer, PortKind, Ports, Row};

/// The name in `over` of the host's own packets, for `ping`: no transport at all.
const HOST: &str = "ip";
/// Maximum number of layers of a stack. Chosen: more than any stack needs; the addresses of TUN devices have room for 8
/// layers.
pub const MAX_LAYERS: usize = 8;

/// One transport with its options, as `over` writes it.
///
/// # Errors
/// A transport that is not in the table, or options that it does not have.
pub fn layer(node: &Node) -> Result<Layer, Diagnostic> {
    let mut layers = Variants::default().layers(node)?;
    layers.pop().ok_or_else(|| node.error("expected a transport"))
}

/// Names given to transports with options, to stacks, and to deliveries with options.
#[derive(Default)]
pub struct Variants {
    stacks: BTreeMap<String, Vec<Layer>>,
    deliveries: BTreeMap<String, DeliveryLayer>,
}

/// The stack of a flow, as its `over` writes it.
pub struct Stack {
    /// The name that tables show.
    pub protocol: String,
    /// From the top down; the lowest is attached to the host's packets, or to frames.
    pub layers: Vec<Layer>,
    /// The ports that the application may use.
    pub offers: Ports,
}

impl Stack {
    /// The name of the topmost layer, as messages call it.
    pub fn top(&self) -> &'static str {
        self.layers.first().map_or(HOST, |layer| layer.row().name)
    }
}

impl Variants {
    /// The variants of a file, from its `variants`.
    ///
    /// # Errors
    /// A name that is a transport's or a delivery's, or a stack that does not fit together.
    pub fn of(node: Option<&Node>) -> Result<Self, Diagnostic> {
        let mut variants = Self::default();
        let Some(node) = node else { return Ok(variants) };
        for entry in entries(node, "`variants`")? {
            let name = &entry.key;
            check_name(name, "variants", &entry.key_span)?;
            if find(name).is_some() {
                return Err(entry
                    .key_span
                    .error(format!("a variant needs a name of its own: `{name}` is a transport")));
            }
            if deliveries::is_delivery(name) {
                return Err(entry
                    .key_span
                    .error(format!("a variant needs a name of its own: `{name}` is a delivery")));
            }
            if matches!(&entry.value.kind, Kind::Map(named) if named.len() == 1 && deliveries::is_delivery(&named[0].key))
            {
                variants.deliveries.insert(name.clone(), deliveries::read(&entry.value, std::iter::empty())?);
                continue;
            }
            let mut layers = Vec::new();
            for item in one_or_list(&entry.value) {
                // A variant is made of transports: the others are not known yet, and need not be.
                layers.extend(Self::default().layers(item)?);
            }
            check(&layers, &entry.value)?;
            variants.stacks.insert(name.clone(), layers);
        }
        Ok(variants)
    }

    /// The stack that `over` names.
    ///
    /// # Errors
    /// A name that is neither a transport's nor a variant's, or layers that do not fit each other.
    pub fn stack(&self, node: &Node) -> Result<Stack, Diagnostic> {
        if matches!(&node.kind, Kind::Scalar(name) if name == HOST) {
            return Ok(Stack { protocol: HOST.to_owned(), layers: Vec::new(), offers: Ports::PACKETS });
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
        let offers = top.row().offers;
        if bottom.row().needs == PortKind::Datagram {
            layers.push(HOSTS_DATAGRAMS.layer());
        }
        Ok(Stack { protocol: names.join("/"), layers, offers })
    }

    /// The delivery that `node` names: a variant of one, or what [`deliveries::read`] reads.
    ///
    /// # Errors
    /// A name that is neither a delivery's nor a variant's, or options that the delivery does not have.
    pub fn delivery(&self, node: &Node) -> Result<DeliveryLayer, Diagnostic> {
        let variant = match &node.kind {
            Kind::Scalar(name) => self.deliveries.get(name),
            Kind::Map(_) | Kind::List(_) => None,
        };
        let names = self.deliveries.keys().map(String::as_str);
        variant.map_or_else(|| deliveries::read(node, names), |delivery| Ok(delivery.clone()))
    }

    /// The layers that one element stands for: `udp`, a variant's name, `tcp-cubic: { … }`.
    fn layers(&self, node: &Node) -> Result<Vec<Layer>, Diagnostic> {
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
        if let (Some(layers), None) = (self.stacks.get(name), options) {
            return Ok(layers.clone());
        }
        let Some(row) = find(name) else {
            let names = TRANSPORTS.iter().map(|row| row.name);
            let all: Vec<&str> = names.chain(self.stacks.keys().map(String::as_str)).collect();
            let hint = did_you_mean_one_of(name, &all);
            return Err(
                span.error(format!("there is no transport `{name}`{hint} (transports: {})", all.join(", ")))
            );
        };
        Ok(vec![(row.read)(row, options)?])
    }
}

/// Whether each layer finds below it what it needs. The host offers packets, and datagrams too.
fn check(layers: &[Layer], node: &Node) -> Result<(), Diagnostic> {
    if layers.len() > MAX_LAYERS {
        return Err(
            node.error(format!("a stack has at most {MAX_LAYERS} layers, this one has {}", layers.len()))
        );
    }
    for pair in layers.windows(2) {
        if let Some(why) = refusal(&pair[0], &pair[1]) {
            return Err(node.error(why));
        }
    }
    Ok(())
}

/// The reason why one layer cannot be on top of another; `None` if it can.
fn refusal(upper: &Layer, lower: &Layer) -> Option<String> {
    let (own, below) = (upper.row(), lower.row());
    if let Some(why) = lower.settings().refuses_above(below, upper) {
        return Some(why);
    }
    if let Some(why) = upper.settings().refuses_below(own, lower) {
        return Some(why);
    }
    if below.offers.has(own.needs) {
        return None;
    }
    let fits = |between: &&&Row| between.offers.has(own.needs) && below.offers.has(between.needs);
    let fitting: Vec<String> =
        TRANSPORTS.iter().filter(fits).map(|between| format!("`{}`", between.name)).collect();
    let hint = if fitting.is_empty() {
        String::new()
    } else {
        format!("; between them fits {}", fitting.join(" or "))
    };
    Some(format!(
        "`{}` needs {} below it, but `{}` offers {}{hint}",
        own.name, own.needs, below.name, below.offers
    ))
}
