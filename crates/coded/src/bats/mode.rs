//! What differs between nodes: with rank feedback ([`ranks`](super::ranks)), or without ([`strict`](super::strict)).

use hopcast_core::{Buffer, Duration, Instant, Item, Stream};

use super::age::Age;
use super::child::Refused;
use super::config::Config;
use super::node::Node;
use super::store::Shape;
use super::strict::Account;
use super::wire::{Data, Info, Report, Session};

/// What a node does in its own way.
pub(super) trait Mode: Sized {
    /// One way of a session through a node.
    type Way;
    /// The sending end of a hop.
    type Sender;
    /// What DATA says, in terms of its way.
    type Packet;

    /// Whether the source tells everybody what to spend on a batch.
    const BUDGETED: bool;

    /// What a node keeps besides.
    fn new(random: &mut Stream) -> Self;

    fn sender(config: &Config, random: Stream) -> Self::Sender;

    /// The way that begins at an edge; `None` for a shape that no code has.
    fn source(config: &Config, session: Session) -> Option<Self::Way>;

    /// A way that comes from elsewhere, as its sender describes it; `sink`: it ends here. `None` for a shape that no code
    /// has.
    fn arriving(&self, config: &Config, info: &Info, sink: bool) -> Option<Self::Way>;

    /// The way's session, and the shape of that.
    fn session(way: &Self::Way) -> (Session, Shape);

    /// The ages of what comes on a way; `None` where delivery is reliable.
    fn age(way: &mut Self::Way) -> Option<&mut Age>;

    /// Whether delivery has a deadline.
    fn has_deadline(way: &Self::Way) -> bool;

    /// The least round trip to a child, if it is known.
    fn least_round_trip(sender: &Self::Sender) -> Option<Duration>;

    /// How long it takes at least to the child of a way that is furthest away, if that is known.
    fn look_ahead(way: &mut Self::Way, ahead: Option<Duration>) {
        if let Some(age) = Self::age(way) {
            age.look_ahead(ahead);
        }
    }

    /// Makes sense of a DATA frame, if there is any in it.
    fn packet(data: &Data<'_>, way: &Self::Way) -> Option<Self::Packet>;

    /// A child begins to be sent what there is of its way.
    fn begin(node: &mut Node<Self>, child: usize);

    /// INFO about a way, for a child of this sender.
    fn describe(way: &Self::Way, sender: &Self::Sender) -> Info;

    /// INFO about a way has come.
    fn learn(_way: &mut Self::Way, _info: &Info) {}

    /// What is before `floor` cannot be had any more.
    fn skip_to(node: &mut Node<Self>, now: Instant, into: usize, floor: u64);

    /// How far everything is delivered behind the child that says this, and was at `before`. `None` if all may give up
    /// what is late, so that nobody waits for anybody.
    fn reached(way: &Self::Way, report: &Report<'_>, account: Option<&Account>, before: u64) -> Option<u64>;

    /// A child of this way counts no more.
    fn on_given_up(node: &mut Node<Self>, now: Instant, out: usize);

    /// A report on the way to the neighbour `from` has come.
    fn on_report(
        node: &mut Node<Self>,
        now: Instant,
        from: usize,
        report: &Report<'_>,
        account: Option<&Account>,
    ) -> Result<(), Refused>;

    /// A packet of a way has come.
    fn take(node: &mut Node<Self>, now: Instant, into: usize, packet: &Self::Packet, payload: Buffer);

    /// Does what time has brought.
    fn pass(node: &mut Node<Self>, now: Instant);

    /// When time brings something to a way.
    fn next_event(way: &Self::Way) -> Option<Instant>;

    /// The next datagram for a neighbour, if there is any now.
    fn transmit(node: &mut Node<Self>, now: Instant, to: usize) -> Option<Item>;

    /// When there will be one, reports aside.
    fn next_send(node: &Node<Self>, to: usize) -> Option<Instant>;

    /// What is counted besides.
    fn counters(_node: &Node<Self>, _report: &mut dyn FnMut(&'static str, u64)) {}
}
