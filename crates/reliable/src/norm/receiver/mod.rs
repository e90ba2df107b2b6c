//! The receiving side of a member.
//!
//! Each sender that is heard has a state of its own, a [`Remote`]: its [`objects`], each an [`object`] of [`block`]s
//! or a [`stream`] of them, and where it is in what it sends ([`progress`]). What is [`missing`] is asked for by
//! [`request`]s; [`nack`] says when, [`asked`] what was asked for already, and [`suppression`] hears others.
//! [`commands`] are what a sender says beside its objects, [`feedback`] is what its congestion control is told.
//! There are [`places`] for a number of senders.
//! Where order is asked for, what is complete waits [`in_order`].

mod asked;
mod block;
mod commands;
mod feedback;
mod held;
mod in_order;
mod missing;
mod nack;
mod numbering;
mod object;
mod objects;
mod places;
mod progress;
mod remote;
mod request;
mod stream;
mod suppression;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::{Instant, Stream};

use self::places::Waiting;
use self::remote::Remote;
use super::config::ReceiverConfig;
use super::wire::{Ack, Body, Message, Nack, NodeId};
use crate::statistics::{Deliveries, Requests, Traffic};

pub(super) use stream::length_prefix;

/// The receiving side of a member.
#[derive(Debug)]
pub(super) struct Receiver {
    config: ReceiverConfig,
    node: NodeId,
    random: Stream,
    remotes: BTreeMap<NodeId, Remote>,
    /// Senders for which there is no place.
    waiting: BTreeMap<NodeId, Waiting>,
    pub(super) traffic: Traffic,
    pub(super) counts: Counts,
}

/// Counters of a receiver, beside its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) nacks_sent: u64,
    /// Rounds in which what was missing had been asked for by others.
    pub(super) nacks_suppressed: u64,
    /// NACKs of others that were heard.
    pub(super) nacks_heard: u64,
    pub(super) acks_sent: u64,
    /// Objects and streams that were handed up to their end.
    pub(super) completed: u64,
    /// Messages of streams that were handed up.
    pub(super) messages: u64,
    /// Objects, and parts of streams, that were given up.
    pub(super) given_up: u64,
    /// Symbols that had arrived already, or were of no use any more.
    pub(super) duplicates: u64,
    /// Symbols for which there was no room, and those of senders for which there was no place.
    pub(super) no_room: u64,
    /// Objects whose layout we cannot take, and symbols that do not fit theirs.
    pub(super) refused: u64,
    pub(super) restarts: u64,
    /// Senders that were forgotten, with what was incomplete of them, to make room for others.
    pub(super) forgotten: u64,
}

/// A delivery to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The sender.
    pub(super) from: NodeId,
    /// Its address.
    pub(super) address: SocketAddr,
    /// Number of what it belongs to, of which the low 16 bits are the object transport id.
    pub(super) object: u64,
    /// The delivered part of the object.
    pub(super) what: Delivered,
}

/// A part of an object that is handed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    /// All of an object.
    Object {
        /// Whether its sender says that it is a file.
        file: bool,
        /// Information of its sender about it, such as a name.
        info: Option<Vec<u8>>,
        /// Its contents.
        bytes: Vec<u8>,
    },
    /// The next bytes of a stream.
    Bytes(Vec<u8>),
    /// The next message of a stream.
    Message(Vec<u8>),
    /// The end of a stream.
    End,
    /// The object, or the next part of the stream, is missing: nobody has it any more.
    Missing,
}

/// Feedback of a receiver to a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Feedback {
    pub(super) to: SocketAddr,
    pub(super) body: Body<'static>,
}

/// Results of a packet or of the passing of time.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) delivered: Vec<Delivery>,
    pub(super) feedback: Vec<Feedback>,
}

/// A packet of a sender, with what its datagram says beside it.
#[derive(Debug)]
pub(super) struct Heard<'a> {
    pub(super) from: SocketAddr,
    /// Whether ECN says that a queue on the way was congested.
    pub(super) marked: bool,
    pub(super) bytes: usize,
    pub(super) message: &'a Message<'a>,
}

impl Receiver {
    pub(super) fn new(config: ReceiverConfig, node: NodeId, random: Stream) -> Self {
        let config = ReceiverConfig { senders: config.senders.max(1), ..config };
        Self {
            config,
            node,
            random,
            remotes: BTreeMap::new(),
            waiting: BTreeMap::new(),
            traffic: Traffic::default(),
            counts: Counts::default(),
        }
    }

    /// Takes a packet of a sender.
    pub(super) fn heard(&mut self, now: Instant, heard: &Heard<'_>, out: &mut Output) {
        let header = match &heard.message.body {
            Body::Info(info) => info.header,
            Body::Data(data) => data.header,
            Body::Command(header, _) => *header,
            Body::Nack(_) | Body::Ack(_) => return,
        };
        let from = heard.message.source;
        if from == self.node || from == NodeId::NONE || from == NodeId::ANY {
            return;
        }
        // Places are free until all were taken once.
        if self.remotes.len() < self.config.senders && !self.remotes.contains_key(&from) {
            self.remotes.insert(from, Remote::new(from, header.instance, heard.from, now));
        }
        let has_place = self.remotes.contains_key(&from);
        if !has_place && !self.finds_place(now, heard, header, out) {
            return;
        }
        let (remotes, _, mut ask) = self.parts();
        let Some(remote) = remotes.get_mut(&from) else { return };
        if has_place {
            // Before what it had begun is forgotten: who begins anew has no more time for that.
            remote.begin_turn(now);
            if !remote.begin(now, heard, header, &mut ask, out) {
                return;
            }
        }
        let place = out.delivered.len();
        match &heard.message.body {
            Body::Info(info) => remote.info(now, info, &mut ask, out),
            Body::Data(data) => remote.data(now, data, &mut ask, out),
            Body::Command(_, command) => remote.command(now, command, &mut ask, out),
            Body::Nack(_) | Body::Ack(_) => {}
        }
        remote.put_in_order(place, &ask, out);
    }

    /// Takes a NACK of another receiver, which may spare ours.
    pub(super) fn nack(&mut self, now: Instant, nack: &Nack) {
        if let Some(remote) =
            self.remotes.get_mut(&nack.sender).filter(|remote| remote.instance == nack.instance)
        {
            self.counts.nacks_heard += 1;
            remote.heard_requests(now, &nack.repairs);
            if let Some(cc) = nack.cc {
                remote.heard_congestion(now, cc);
            }
        }
    }

    /// Takes an acknowledgement of another receiver.
    pub(super) fn ack(&mut self, now: Instant, ack: &Ack<'_>) {
        if let Some(remote) =
            self.remotes.get_mut(&ack.sender).filter(|remote| remote.instance == ack.instance)
            && let Some(cc) = ack.cc
        {
            remote.heard_congestion(now, cc);
        }
    }

    pub(super) fn wake(&mut self, now: Instant, out: &mut Output) {
        self.wake_remotes(now, out);
        self.wake_waiting(now, out);
        // What is asked for without a back-off is asked for at once.
        while self.give_places(now, out) {
            self.wake_remotes(now, out);
        }
    }

    /// The senders with a place, those that wait, and what both are given.
    fn parts(&mut self) -> (&mut BTreeMap<NodeId, Remote>, &mut BTreeMap<NodeId, Waiting>, Ask<'_>) {
        let ask =
            Ask { config: &self.config, node: self.node, random: &mut self.random, counts: &mut self.counts };
        (&mut self.remotes, &mut self.waiting, ask)
    }

    fn wake_remotes(&mut self, now: Instant, out: &mut Output) {
        let (remotes, _, mut ask) = self.parts();
        for remote in remotes.values_mut() {
            remote.wake(now, &mut ask, out);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let remotes = self.remotes.values().filter_map(Remote::deadline);
        remotes.chain(self.next_leaving()).chain(self.next_place()).min()
    }

    /// Bytes held of all senders: of what is incomplete, and of what was decoded or waits for what comes before it.
    #[cfg(test)]
    pub(super) fn held(&self) -> (u64, u64) {
        let held = self.remotes.values().map(Remote::held);
        held.fold((0, 0), |(incomplete, decoded), held| {
            (incomplete + held.incomplete, decoded + held.decoded)
        })
    }

    pub(super) fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let counts = self.counts;
        self.traffic.counters(report);
        Requests {
            sent: counts.nacks_sent,
            suppressed: counts.nacks_suppressed,
            heard: counts.nacks_heard,
            received: 0,
        }
        .counters(report);
        Deliveries { objects: counts.completed, messages: counts.messages, given_up: counts.given_up }
            .counters(report);
        report("acks_sent", counts.acks_sent);
        report("symbols_duplicate", counts.duplicates);
        report("symbols_without_room", counts.no_room);
        report("symbols_refused", counts.refused);
        report("senders_restarted", counts.restarts);
        report("senders_forgotten", counts.forgotten);
    }
}

/// The parts of a receiver that a [`Remote`] uses.
struct Ask<'a> {
    config: &'a ReceiverConfig,
    node: NodeId,
    random: &'a mut Stream,
    counts: &'a mut Counts,
}
