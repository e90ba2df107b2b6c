//! `tcp-cubic`, `tcp-bbr`, `tcp-reno`, `tcp-vegas`: TCP, in virtual time our own and on the kernel the kernel's.

use hopcast_config::Diagnostic;
use hopcast_config::decode::{duration, flag, size, some_duration, whole};
use hopcast_config::yaml::Node;
use hopcast_core::plug::{Accept, TcpPlug};
use hopcast_core::{Bytes, Duration};
use hopcast_peers::tcp::{Config, Congestion, Tcp as TcpMachine};

use crate::error::BuildError;
use crate::network::{HOP_LIMIT, NodeId};
use crate::platform::LowerPort;
use crate::table::{Form, Opt, OptionDoc, Options, on_off, shown};
use crate::transport::{End, FlowPlan, PortKind, Ports, ReadOptions, Row, Socket, Transport};

pub(super) static CUBIC: Row = Row {
    name: "tcp-cubic",
    about: "TCP with CUBIC and selective acknowledgements, as Linux sets it (RFC 9293, 9438, 2018)",
    ..base("cubic", |row, options| OPTIONS.layer(row, options, Tcp::with(Congestion::Cubic)))
};

pub(super) static BBR: Row = Row {
    name: "tcp-bbr",
    about: "TCP with BBR version 1 and pacing, as Linux sets it",
    ..base("bbr", |row, options| OPTIONS.layer(row, options, Tcp::with(Congestion::Bbr)))
};

pub(super) static RENO: Row = Row {
    name: "tcp-reno",
    about: "TCP with Reno's congestion control (RFC 5681) and selective acknowledgements",
    ..base("reno", |row, options| OPTIONS.layer(row, options, Tcp::with(Congestion::Reno)))
};

pub(super) static VEGAS: Row = Row {
    name: "tcp-vegas",
    about: "TCP with Vegas, which reads congestion from round trips, and selective acknowledgements",
    ..base("vegas", |row, options| OPTIONS.layer(row, options, Tcp::with(Congestion::Vegas)))
};

/// The rest of a row of TCP, whose congestion control the kernel calls `kernel`.
const fn base(kernel: &'static str, read: ReadOptions) -> Row {
    Row {
        offers: Ports(&[PortKind::Stream]),
        needs: PortKind::Packet,
        socket: Some(Socket::Tcp { congestion: Some(kernel) }),
        options: docs,
        read,
        ..Row::BASE
    }
}

/// The options of every TCP, as documentation shows them.
pub(super) fn docs() -> Vec<OptionDoc> {
    OPTIONS.docs(&Tcp(Config::default()))
}

/// The settings of a TCP.
#[derive(Clone, Debug)]
pub(super) struct Tcp(pub(super) Config);

pub(super) static OPTIONS: Options<Tcp> = Options(&[
    Opt {
        key: "initial-window",
        about: "The window at the start, in segments, 1 to 1000. Too small, and short transfers wait for round trips; \
                too large, and their first burst overflows a queue (RFC 6928).",
        form: Form::Count,
        set: |tcp, node, key| whole(node, key, 1..=1000).map(|found| tcp.0.initial_window = found as u32),
        show: |tcp| shown(&tcp.0.initial_window),
    },
    Opt {
        key: "sack",
        about: "Selective acknowledgements (RFC 2018). Without them, each round trip repairs one loss.",
        form: Form::Flag,
        set: |tcp, node, key| flag(node, key).map(|found| tcp.0.sack = found),
        show: |tcp| on_off(tcp.0.sack),
    },
    Opt {
        key: "min-rto",
        about: "The minimum retransmission timeout. Too short, and segments that are only late are sent again; too long, \
                and a lost tail waits.",
        form: Form::Duration,
        set: |tcp, node, key| some_duration(node, key).map(|found| tcp.0.min_rto = found),
        show: |tcp| shown(&tcp.0.min_rto),
    },
    Opt {
        key: "delayed-ack",
        about: "How long an acknowledgement waits for a second segment, at most 500 ms (RFC 9293); `0s` acknowledges each \
                segment.",
        form: Form::Duration,
        set: |tcp, node, key| delayed_ack(node, key).map(|found| tcp.0.delayed_ack = found),
        show: |tcp| shown(&tcp.0.delayed_ack),
    },
    Opt {
        key: "receive-buffer",
        about: "The receive buffer, 2 KiB to 1 GiB. It bounds what is outstanding, so that less than the path's rate times \
                its round trip does not fill it.",
        form: Form::Size,
        set: |tcp, node, key| buffer(node, key).map(|found| tcp.0.receive_buffer = found),
        show: |tcp| shown(&tcp.0.receive_buffer),
    },
    Opt {
        key: "send-buffer",
        about: "The send buffer, 2 KiB to 1 GiB. It bounds what is outstanding, as the receive buffer does.",
        form: Form::Size,
        set: |tcp, node, key| buffer(node, key).map(|found| tcp.0.send_buffer = found),
        show: |tcp| shown(&tcp.0.send_buffer),
    },
]);

pub(super) fn buffer(node: &Node, key: &str) -> Result<Bytes, Diagnostic> {
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

impl Tcp {
    /// Linux' settings with a congestion control.
    pub(super) fn with(congestion: Congestion) -> Self {
        Self(Config { congestion, ..Config::default() })
    }

    /// The settings on a node: a host knows the MTU of its own link.
    pub(super) fn on(&self, flow: &FlowPlan<'_>, node: NodeId, depth: usize) -> Config {
        let mtu = flow.packet_mtu(node, depth).unwrap_or(self.0.mtu);
        Config { mtu, hop_limit: HOP_LIMIT, ..self.0.clone() }
    }

    /// The kernel's TCP with the same congestion control.
    pub(super) fn on_kernel(&self, accept: Option<Accept>) -> TcpPlug {
        let congestion = match self.0.congestion {
            Congestion::Cubic => "cubic",
            Congestion::Bbr => "bbr",
            Congestion::Reno => "reno",
            Congestion::Vegas => "vegas",
        };
        TcpPlug { accept, congestion: Some(congestion.to_owned()), ..TcpPlug::default() }
    }

    /// Puts a TCP on one end of a flow.
    pub(super) fn put(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let local = end.ends.local;
        if end.is_on_kernel() {
            let tcp = TcpPlug { redirectable: true, ..self.on_kernel(end.accepts(local)) };
            return end.nodes.kernel_tcp(end.node, tcp).map(Some);
        }
        if end.below.is_none() {
            let client = if end.is_sender() { end.flow().spec.client_ports.clone() } else { 0..0 };
            end.below = Some(end.nodes.tcp_packets(end.node, client.chain([local.port()]))?);
        }
        let listens = end.flow().spec.to.contains(&end.node).then_some(local.port());
        let config = self.on(end.flow(), end.node, end.depth);
        let machine = TcpMachine::new(config, listens, vec![local.ip()], end.random());
        end.attach("tcp", Box::new(machine)).map(Some)
    }

    /// The first option that is not the default: the kernel's TCP is as the kernel is set up.
    pub(super) fn changed_option(&self) -> Option<&'static str> {
        let usual = Self::with(self.0.congestion);
        let changed = |option: &&Opt<Self>| (option.show)(self) != (option.show)(&usual);
        OPTIONS.0.iter().find(changed).map(|option| option.key)
    }
}

impl Transport for Tcp {
    fn overhead(&self, ip: u64) -> u64 {
        // The header with timestamps, which every segment has.
        ip + 32
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        self.put(end)
    }

    fn virtual_time_only(&self) -> Option<&'static str> {
        self.changed_option()
    }
}
