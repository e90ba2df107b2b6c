//! `hop-arq`: a stream that every hop of the route repairs for itself.

use hopcast_peers::hop_arq::{Config, HopArq as HopArqMachine, OVERHEAD};

use super::tcp::buffer;
use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options, shown};
use crate::transport::{End, Feedback, FlowNodes, FlowPlan, PortKind, Ports, Row, Transport};

pub(super) static HOP_ARQ: Row = Row {
    name: "hop-arq",
    about: "selective repeat on every hop of the route, in order at the end",
    offers: Ports(&[PortKind::Stream]),
    feedback: Feedback::HopByHop,
    options: || OPTIONS.docs(&HopArq(Config::default())),
    read: |row, options| OPTIONS.layer(row, options, HopArq(Config::default())),
    ..Row::BASE
};

/// The settings of every node.
#[derive(Clone, Debug)]
struct HopArq(Config);

static OPTIONS: Options<HopArq> = Options(&[
    Opt {
        key: "receive-buffer",
        about: "The receive buffer of each hop, 2 KiB to 1 GiB. It bounds what a hop has outstanding.",
        form: Form::Size,
        set: |arq, node, key| buffer(node, key).map(|found| arq.0.receive_buffer = found),
        show: |arq| shown(&arq.0.receive_buffer),
    },
    Opt {
        key: "send-buffer",
        about: "The send buffer of each hop, 2 KiB to 1 GiB. It bounds what a hop has outstanding.",
        form: Form::Size,
        set: |arq, node, key| buffer(node, key).map(|found| arq.0.send_buffer = found),
        show: |arq| shown(&arq.0.send_buffer),
    },
]);

impl HopArq {
    fn on(&self, flow: &FlowPlan<'_>, depth: usize) -> Config {
        Config { datagram: flow.room(depth), slack: flow.slack, ..self.0.clone() }
    }
}

impl Transport for HopArq {
    fn overhead(&self, _: u64) -> u64 {
        OVERHEAD
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let ends = (end.ends.local, end.ends.remote);
        let neighbour = end.neighbours().first().copied().unwrap_or(ends.1);
        let arq = HopArqMachine::edge(self.on(end.flow(), end.depth), ends.0, ends, neighbour, end.random());
        end.attach("arq", Box::new(arq)).map(Some)
    }

    fn put_between(&self, nodes: &mut FlowNodes<'_>, depth: usize) -> Result<(), BuildError> {
        let plan = nodes.flow;
        if !plan.others_take_part(depth) {
            return Ok(());
        }
        for participant in nodes.relays() {
            let (node, own) = (participant.node, participant.address);
            let (before, after) =
                (plan.participants.before(participant), plan.participants.after(participant));
            let Some(between) = before.zip(after) else { continue };
            let random = plan.random(node, depth).fork();
            let relay = HopArqMachine::relay(self.on(plan, depth), own, between.into(), random);
            let below = nodes.put_below_relay(depth, node, own)?;
            nodes.attach(nodes.node_name(node), node, Box::new(relay), below);
        }
        Ok(())
    }
}
