//! The differences between nodes with rank feedback ([`ranks`](super::ranks)) and without ([`strict`](super::strict)).

use hopcast_core::{Buffer, Duration, Instant, Stream};

use super::age::Age;
use super::batch::Batch;
use super::child::Refused;
use super::config::Config;
use super::hop::OverHop;
use super::node::Node;
use super::packet::Packet;
use super::receiver::Receiver;
use super::shape::Shape;
use super::wire::{BatchHeader, Data, EndToEndReport, Info, Report, Session};

/// The part of a node that depends on the feedback.
pub(super) trait Mode: Sized {
    /// One direction of a session through a node.
    type Direction;
    /// The sending end of a hop.
    type Sender: OverHop;
    /// A DATA frame, in terms of its direction.
    type Arrived;

    /// Whether the source tells all nodes the number of packets of a batch.
    const BUDGETED: bool;

    /// Packets that a relay lets its parent be further ahead for each packet by which a mean burst of losses is longer
    /// than those that count as usual.
    const BURST_ALLOWANCE: f64;

    /// Whether a probe asks for a report by itself, and not only by the INFO that goes with it.
    const PROBES_ASK: bool;

    /// The state of a node besides.
    fn new(random: &mut Stream) -> Self;

    fn sender(config: &Config, random: Stream) -> Self::Sender;

    /// The direction that begins at an edge; `None` for a shape that no code has.
    fn source(config: &Config, session: Session) -> Option<Self::Direction>;

    /// A direction that comes from elsewhere, as its sender describes it; `sink`: it ends here. `None` for a shape that
    /// no code has.
    fn arriving(&self, config: &Config, info: &Info, sink: bool) -> Option<Self::Direction>;

    /// The direction's session, and the shape of that.
    fn session(direction: &Self::Direction) -> (Session, Shape);

    /// The ages of data that arrives in a direction; `None` where delivery is reliable.
    fn age(direction: &Self::Direction) -> Option<&Age>;

    fn age_mut(direction: &mut Self::Direction) -> Option<&mut Age>;

    /// Minimum time to the end of a direction that is furthest away, as far as it is known, and where all of it is.
    fn look_ahead(direction: &mut Self::Direction, ahead: Option<Duration>, rest: Option<Duration>) {
        if let Some(age) = Self::age_mut(direction) {
            age.look_ahead(ahead, rest);
        }
    }

    /// Makes sense of a DATA frame, if there is any in it.
    fn packet(data: &Data<'_>, direction: &Self::Direction) -> Option<Self::Arrived>;

    /// Begins to send the data of its direction to a child.
    fn begin(node: &mut Node<Self>, child: usize);

    /// INFO about a direction has come.
    fn learn(_way: &mut Self::Direction, _info: &Info) {}

    /// Nothing before `floor` can be had any more.
    fn skip_to(node: &mut Node<Self>, now: Instant, into: usize, floor: u64);

    /// Number up to which everything is delivered behind the child that says this, where it was `before`. `None` if all
    /// may give up what is late, so that nobody waits for anybody.
    fn reached(
        direction: &Self::Direction,
        report: &Report<'_>,
        end_to_end: Option<&EndToEndReport>,
        before: u64,
    ) -> Option<u64>;

    /// A child of this direction counts no more.
    fn on_given_up(node: &mut Node<Self>, now: Instant, out: usize);

    /// A report on the direction to the neighbour `from` has come.
    fn on_report(
        node: &mut Node<Self>,
        now: Instant,
        from: usize,
        report: &Report<'_>,
        end_to_end: Option<&EndToEndReport>,
    ) -> Result<(), Refused>;

    /// A packet of a direction has come.
    fn take(node: &mut Node<Self>, now: Instant, into: usize, packet: &Self::Arrived, payload: Buffer);

    /// Does the work that has become due.
    fn pass(node: &mut Node<Self>, now: Instant);

    /// Time at which something happens to a direction by itself.
    fn next_event(direction: &Self::Direction) -> Option<Instant>;

    /// Makes something new for a child that could be sent it, and nothing else.
    fn make(node: &mut Node<Self>, now: Instant, to: usize);

    /// The packet to send a child now, if there is any.
    fn choose(sender: &mut Self::Sender, now: Instant, direction: &Self::Direction) -> Option<Packet>;

    /// The batch of a packet, and its place in the session, if it is still there.
    fn place(direction: &Self::Direction, batch: u64) -> Option<Place<'_>>;

    /// A packet is sent, in a datagram of `bytes` bytes.
    fn on_sent(node: &mut Node<Self>, now: Instant, to: usize, packet: &Packet, bytes: usize);

    /// Nothing can be sent now: sees to it that a lost report does not stop everything.
    fn arm(node: &mut Node<Self>, now: Instant, to: usize);

    /// One of several paths seems to be dead.
    fn go_round(_node: &mut Node<Self>, _dead: usize) {}

    /// The first symbol of a direction that can still be had, for INFO.
    fn floor(direction: &Self::Direction) -> u64;

    /// The bytes to spend on a batch, in 16, for INFO.
    fn budget(_way: &Self::Direction) -> Option<u16> {
        None
    }

    /// Whether the direction goes on from here.
    fn is_relay(direction: &Self::Direction) -> bool;

    /// The number of bytes of a full packet on the link.
    fn packet_len(direction: &Self::Direction) -> u64;

    /// Up to where a parent has come; `None` if it has not been heard.
    fn position(direction: &Self::Direction, receiver: &Receiver) -> Option<u64>;

    /// Up to where it may come, as far as there is a place for what it sends.
    fn limit(direction: &Self::Direction, receiver: &Receiver) -> u64;

    /// The report's fields about a direction; the receiver of the hop knows the others. `granted`: up to where the
    /// parent may send, in terms of [`position`](Self::position).
    fn report(
        config: &Config,
        direction: &Self::Direction,
        receiver: &mut Receiver,
        granted: u64,
        list: &mut Vec<u8>,
    ) -> Option<Said>;

    /// The end-to-end report that goes with a report to a neighbour.
    fn end_to_end(_node: &mut Node<Self>, _now: Instant, _to: usize) -> Option<EndToEndReport> {
        None
    }

    /// Time at which there will be one, reports aside.
    fn next_send(node: &Node<Self>, to: usize) -> Option<Instant>;

    /// Reports the figures that only this mode has.
    fn counters(_node: &Node<Self>, _report: &mut dyn FnMut(&'static str, u64)) {}
}

/// A batch that a packet is made of, and its place in the session.
pub(super) struct Place<'a> {
    pub(super) batch: &'a Batch,
    /// The block's number as DATA tells it.
    pub(super) block: u32,
    pub(super) header: BatchHeader,
}

/// Fields of a [`Report`] about a direction.
pub(super) struct Said {
    pub(super) floor: u32,
    pub(super) grant: u16,
    pub(super) base: u16,
    pub(super) complete: bool,
}
