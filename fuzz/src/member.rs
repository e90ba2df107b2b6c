//! One member of a group: it hears datagrams at times of the input, and what it sends is judged.

use std::net::SocketAddr;

use hopcast_core::bytes::Reader;
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port};

use crate::timers::{MANY, Timers};

/// A member, its clock, and what its protocol says of the datagrams that it sends.
pub struct Member<M, S> {
    /// The time it is.
    pub now: Instant,
    /// The machine.
    pub machine: M,
    /// Datagrams that it has sent.
    pub sent: S,
    /// Datagrams that it has heard.
    pub heard: u64,
}

/// Datagrams that a member has sent, as far as they are judged.
pub trait Sent {
    /// Notes one.
    fn note(&mut self, datagram: &Datagram);
}

impl<M: Machine, S: Sent> Member<M, S> {
    /// A member that begins.
    pub fn new(machine: M, sent: S) -> Self {
        let mut member = Self { now: Instant::ZERO, machine, sent, heard: 0 };
        member.machine.wake(Instant::ZERO);
        member.drain();
        member
    }

    /// Its application gives it an item.
    pub fn give(&mut self, item: Item) {
        self.machine.handle(self.now, Port::Above(0), item);
        self.drain();
    }

    /// A datagram for it arrives.
    pub fn hear(&mut self, local: SocketAddr, from: SocketAddr, bytes: &[u8]) {
        self.heard += 1;
        let item = Item::Datagram(Datagram::new(local, from, Buffer::copy_from(bytes)));
        self.machine.handle(self.now, Port::Below(0), item);
        self.drain();
    }

    /// Hears the datagrams of an input, each handed to `check` first: the time since the one before in milliseconds (8
    /// bits), the node that it is said to be from (8 bits), length (16 bits), bytes.
    pub fn hear_all(
        &mut self,
        reader: &mut Reader<'_>,
        local: SocketAddr,
        address: impl Fn(u8) -> SocketAddr,
        check: impl Fn(&[u8]),
    ) {
        while let (Ok(wait), Ok(from), Ok(len)) = (reader.u8(""), reader.u8(""), reader.u16("")) {
            let bytes = reader.take(usize::from(len).min(reader.rest().len()), "").unwrap_or_default();
            check(bytes);
            self.wait(Duration::from_millis(wait.into()));
            self.hear(local, address(from), bytes);
        }
    }

    /// Takes all that it hands over.
    ///
    /// # Panics
    /// If that has no end, or its deadline is not in the future after it.
    fn drain(&mut self) {
        for _ in 0..MANY {
            match self.machine.poll(self.now) {
                Some((Port::Below(0), Item::Datagram(datagram))) => self.sent.note(&datagram),
                Some((Port::Above(0), _)) => {}
                Some(other) => panic!("{other:?}"),
                None => {
                    if let Some(at) = self.machine.deadline() {
                        assert!(at > self.now, "a deadline of {at} at {}", self.now);
                    }
                    return;
                }
            }
        }
        panic!("there is no end to what it says");
    }
}

impl<M: Machine, S: Sent> Timers for Member<M, S> {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn machine(&mut self, which: usize) -> Option<&mut dyn Machine> {
        (which == 0).then_some(&mut self.machine as &mut dyn Machine)
    }

    fn woken(&mut self, _: usize) {
        self.drain();
    }
}
