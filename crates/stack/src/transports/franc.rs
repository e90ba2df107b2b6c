//! `franc`: packets coded over each shared medium of the route: two edges on each link, and a helper where one is
//! wanted.

use hopcast_coded::franc::{self, Config, ETHER_TYPE, Field, Links, Losses, Plan};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, choice, flag, share, some_duration, whole};
use hopcast_config::yaml::Node;
use hopcast_core::{Fraction, Machine, Port};

use crate::error::{BuildError, Cause};
use crate::network::{LinkId, NetworkPlan, NodeId};
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options, on_off, shown};
use crate::transport::{End, FlowNodes, FlowPlan, PortKind, Ports, Row, Transport};

pub(super) static FRANC: Row = Row {
    name: "franc",
    about: "packets coded over a shared medium, with a helper that overhears if there is one",
    offers: Ports::PACKETS,
    needs: PortKind::Frame,
    coded: true,
    options: || OPTIONS.docs(&Franc(Config::default())),
    read: |row, options| {
        let defaults = || Franc(Config::default());
        OPTIONS.layer_as(
            row,
            options,
            defaults(),
            |_| defaults(),
            |found| {
                // The symbol makes room in the frame for the bitmap of the block.
                let found = Franc(found.0.clone().over(found.0.field));
                if let (Some(node), Err(error)) = (options, found.0.validate()) {
                    return Err(node.error(format!("`{}`: {error}", row.name)));
                }
                Ok(found)
            },
        )
    },
    ..Row::BASE
};

/// Bytes of a frame's payload that FRANC fills: all of Ethernet's (IEEE 802.3, section 3.2.7).
const FRAME_PAYLOAD: u64 = 1500;
/// The plans by which it sends: by expected deficit, or by the paper's budgets, with the paper's other parameters.
const PLANS: [&str; 2] = ["deficit", "budget"];

/// The settings of every edge and helper.
#[derive(Clone, Debug)]
struct Franc(Config);

static OPTIONS: Options<Franc> = Options(&[
    Opt {
        key: "plan",
        about: "`deficit`: each edge sends what the decoder is expected to lack. `budget`: the paper's budgets and its other \
                parameters.",
        form: Form::OneOf(&PLANS),
        set: |franc, node, key| {
            if choice(node, key, &PLANS)?.0 == "budget" {
                // The other options are read later, and change what it says.
                franc.0 = Config::paper();
            }
            Ok(())
        },
        show: |franc| if is_budget(&franc.0) { "budget" } else { "deficit" }.to_owned(),
    },
    Opt {
        key: "overshoot",
        about: "With `plan: budget`, packets sent beyond the expected need, as a share, `5 %` unless it is set. Too few, and generations wait for a \
                timeout; too many take the channel from the next.",
        form: Form::Share,
        set: |franc, node, key| match &mut franc.0.plan {
            Plan::Budget { overshoot } => {
                *overshoot = 1.0 + share(node, key)?.get();
                Ok(())
            }
            Plan::Deficit => Err(node.error(format!("`{key}`: only `plan: budget` has one"))),
        },
        show: |franc| match franc.0.plan {
            Plan::Budget { overshoot } => format!("{:.0} %", (overshoot - 1.0) * 100.0),
            Plan::Deficit => "none".to_owned(),
        },
    },
    Opt {
        key: "block",
        about: "Packets of a generation, 1 to 255; of `budget` 150. Large ones cost delay and arithmetic, small ones more repair on top.",
        form: Form::Count,
        set: |franc, node, key| whole(node, key, 1..=255).map(|found| franc.0.block = found as u8),
        show: |franc| shown(&franc.0.block),
    },
    Opt {
        key: "window",
        about: "Generations outstanding, 1 to 64; of `budget` 1. Too few leave the channel idle while an acknowledgement is under way.",
        form: Form::Count,
        set: |franc, node, key| whole(node, key, 1..=64).map(|found| franc.0.window = found as u8),
        show: |franc| shown(&franc.0.window),
    },
    Opt {
        key: "timeout",
        about: "How long an edge waits for an acknowledgement before it sends more. Too short sends in vain, too long waits.",
        form: Form::Duration,
        set: |franc, node, key| some_duration(node, key).map(|found| franc.0.timeout = found),
        show: |franc| shown(&franc.0.timeout),
    },
    Opt {
        key: "losses",
        about: "The losses from source to helper (`e1`), helper to destination (`e2`) and source to destination (`e3`), if \
                they are known and need not be measured.",
        form: Form::Shares(&[
            ("e1", "The loss from source to helper. Default: `0 %`."),
            ("e2", "The loss from helper to destination. Default: `0 %`."),
            ("e3", "The loss from source to destination. Default: `0 %`."),
        ]),
        set: |franc, node, key| {
            let what = format!("`{key}`");
            let fields = Fields::of(node, &what, &["e1", "e2", "e3"])?;
            let loss = |key| Ok::<f64, Diagnostic>(fields.read(key, share)?.map_or(0.0, Fraction::get));
            let losses = Losses { e1: loss("e1")?, e2: loss("e2")?, e3: loss("e3")? };
            franc.0.links = Links::Given(losses);
            Ok(())
        },
        show: |franc| match franc.0.links {
            Links::Given(Losses { e1, e2, e3 }) => {
                [e1, e2, e3].map(|loss| format!("{:.1} %", loss * 100.0)).join(" / ")
            }
            Links::Measured => "measured".to_owned(),
        },
    },
    Opt {
        key: "field",
        about: "The size of the finite field, 2 or 256; of `budget` 2. The binary one costs less arithmetic and wastes some packets.",
        form: Form::OneNumberOf(&[2, 256]),
        set: |franc, node, key| {
            let field = field(node, key)?;
            // It makes room in the frame for its coefficients.
            franc.0 = franc.0.clone().over(field);
            Ok(())
        },
        show: |franc| match franc.0.field {
            Field::Binary => "2".to_owned(),
            Field::Binary8 => "256".to_owned(),
        },
    },
    Opt {
        key: "helper",
        about: "Whether a station that overhears repeats what the destination lacks; `roles` names it.",
        form: Form::Flag,
        set: |franc, node, key| {
            if flag(node, key)? {
                franc.0 = franc.0.clone().with_helper();
            }
            Ok(())
        },
        show: |franc| on_off(franc.0.helper),
    },
]);

fn field(node: &Node, key: &str) -> Result<Field, Diagnostic> {
    match whole(node, key, 2..=256)? {
        2 => Ok(Field::Binary),
        256 => Ok(Field::Binary8),
        found => Err(node.error(format!("`{key}`: expected 2 or 256, found `{found}`"))),
    }
}

fn is_budget(config: &Config) -> bool {
    matches!(config.plan, Plan::Budget { .. })
}

/// One link of the route, with the stations that are its ends.
#[derive(Clone, Copy)]
struct Segment {
    link: LinkId,
    from: usize,
    to: usize,
}

impl Transport for Franc {
    fn overhead(&self, _: u64) -> u64 {
        FRAME_PAYLOAD - u64::from(self.0.mtu)
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let segments = segments(end.flow());
        let first = end.is_sender();
        let segment = if first { segments.first() } else { segments.last() };
        let segment = segment.ok_or_else(|| end.nodes.error(end.node, Cause::NoLink))?;
        let &Segment { link, from, to } = segment;
        let (own, peer) = if first { (from, to) } else { (to, from) };
        let (edge, below) = self.edge(end.nodes, link, own, peer)?;
        Ok(Some(end.attach_to("franc", edge, below)))
    }

    /// A pair of edges on each node between segments, and the helpers.
    fn put_between(&self, nodes: &mut FlowNodes<'_>, _: usize) -> Result<(), BuildError> {
        let segments = segments(nodes.flow);
        for two in segments.windows(2) {
            let [left, right] = [two[0], two[1]];
            let node = station(nodes.flow, right.link, right.from);
            if !nodes.builds(node) {
                continue;
            }
            let name = nodes.node_name(node);
            let (edge, below) = self.edge(nodes, left.link, left.to, left.from)?;
            let on_left = nodes.attach(name, node, edge, below);
            let (edge, below) = self.edge(nodes, right.link, right.from, right.to)?;
            let slot = nodes.add(name, node, edge);
            nodes.wire(node, (slot, Port::Below(0)), below);
            nodes.wire(node, (slot, Port::Above(0)), on_left);
        }
        if self.0.helper {
            segments.iter().try_for_each(|segment| self.put_helper(nodes, *segment))?;
        }
        Ok(())
    }

    fn packet_mtu(&self) -> Option<u32> {
        Some(u32::from(self.0.mtu))
    }

    fn frame_payload(&self) -> Option<u64> {
        Some(FRAME_PAYLOAD)
    }

    fn wants_helper(&self) -> bool {
        self.0.helper
    }
}

impl Franc {
    fn put_helper(&self, nodes: &mut FlowNodes<'_>, segment: Segment) -> Result<(), BuildError> {
        let Segment { link, from, to } = segment;
        let plan = nodes.flow;
        let helpers = plan.network.role("helper");
        let hears = |number: &usize| {
            *number != from && *number != to && helpers.contains(&station(plan, link, *number))
        };
        let Some(own) = (0..plan.plan.ends(link).len()).find(hears) else {
            let cause = Cause::NoHelper { link: plan.network.links[link].name.clone() };
            return Err(nodes.error(station(plan, link, from), cause));
        };
        let node = station(plan, link, own);
        if !nodes.builds(node) {
            return Ok(());
        }
        let mac = |attachment| NetworkPlan::mac(link, attachment);
        let random = plan.random_on_link(node, &plan.network.links[link].name);
        let helper = franc::helper(self.0.clone(), mac(own), [mac(from), mac(to)], random);
        let helper = helper.map_err(|error| nodes.error(node, Cause::Settings(error.into())))?;
        let below = frames(nodes, node, link)?;
        nodes.attach(nodes.node_name(node), node, helper, below);
        Ok(())
    }

    /// An edge on a link, and the port that it is to be attached to.
    fn edge(
        &self,
        nodes: &mut FlowNodes<'_>,
        link: LinkId,
        own: usize,
        peer: usize,
    ) -> Result<(Box<dyn Machine>, LowerPort), BuildError> {
        let plan = nodes.flow;
        let node = station(plan, link, own);
        let [own_mac, peer_mac] = [own, peer].map(|attachment| NetworkPlan::mac(link, attachment));
        let random = plan.random_on_link(node, &plan.network.links[link].name);
        let edge = franc::edge(self.0.clone(), own_mac, peer_mac, random);
        let edge = edge.map_err(|error| nodes.error(node, Cause::Settings(error.into())))?;
        Ok((edge, frames(nodes, node, link)?))
    }
}

/// The links of a flow's route.
fn segments(flow: &FlowPlan<'_>) -> Vec<Segment> {
    let route = flow.route.iter().enumerate();
    let segment = route.filter_map(|(place, hop)| {
        let next = flow.route.get(place + 1).map_or(flow.spec.to[0], |&next| flow.plan.sender(next));
        let to = flow.plan.ends(hop.link).iter().position(|&(node, _)| node == next)?;
        Some(Segment { link: hop.link, from: hop.attachment, to })
    });
    segment.collect()
}

/// The port of FRANC's frames on a node's interface to a link.
fn frames(nodes: &mut FlowNodes<'_>, node: NodeId, link: LinkId) -> Result<LowerPort, BuildError> {
    let taken = || Cause::InterfaceTaken { link: nodes.flow.network.links[link].name.clone() };
    let interface = nodes.flow.plan.host_interface(node, link);
    let interface = interface.ok_or_else(|| nodes.error(node, taken()))?;
    nodes.frames(node, interface, ETHER_TYPE)
}

/// The node that is a station of a link.
fn station(flow: &FlowPlan<'_>, link: LinkId, number: usize) -> NodeId {
    flow.plan.ends(link)[number].0
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use hopcast_config::yaml::{Source, parse};

    use super::*;

    #[test]
    fn every_block_leaves_room_for_its_bitmap_in_the_frame() {
        let source = Arc::new(Source { name: "test".to_owned(), dir: PathBuf::new(), lines: true });
        for options in ["helper: off", "helper: on", "field: 2", "plan: budget"] {
            for block in 1..=255 {
                let node = parse(&format!("{{ franc: {{ block: {block}, {options} }} }}"), &source).unwrap();
                let layer = super::super::layer(&node).unwrap();
                let Franc(config) = layer.settings_as().unwrap();
                let longest = config.longest_frame() as u64;
                assert!(longest <= FRAME_PAYLOAD, "{options}, block {block}: {longest} bytes");
            }
        }
    }
}
