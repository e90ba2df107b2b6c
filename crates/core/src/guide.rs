//! A worked example: a stack of two machines on a lossy link.
//!
//! The upper machine, `StopAndWait`, has a message port above and a packet port below: it numbers each message, sends
//! it, and sends it again until it is acknowledged. The lower one, `Framing`, has a packet port above and a frame port
//! below. Plugged into each other they are an [`Assembly`](crate::Assembly), which is a machine again, with a message
//! port above and a frame port below. Two of these on a link that loses three frames in ten deliver every message
//! once and in order.
//!
//! The loop at the end is all that "virtual time" means: find what is due next, wake it, and carry what it says to
//! where it goes. The engine of the twin does the same for many nodes; a live runner does it with sockets and a clock.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use hopcast_core::*;
//! use hopcast_link::{Config, Direction, Event, Link, Loss, PointToPoint};
//!
//! /// Sends one message at a time, again and again until the other end has it.
//! #[derive(Default)]
//! struct StopAndWait {
//!     waiting: VecDeque<Buffer>,  // from above, not yet acknowledged; the first is on its way
//!     sent: u8,                   // the number of the message on its way
//!     expected: u8,               // the number of the next message from the other end
//!     again: Option<Instant>,     // when to send again
//!     out: Outbox,
//! }
//!
//! const TIMEOUT: Duration = Duration::from_millis(30);
//! const DATA: u8 = 0;
//! const ACK: u8 = 1;
//!
//! impl StopAndWait {
//!     fn transmit(&mut self, now: Instant) {
//!         self.again = None;
//!         if let Some(message) = self.waiting.front() {
//!             let mut packet = message.clone();
//!             packet.prepend(2).copy_from_slice(&[DATA, self.sent]);
//!             self.out.down(Item::Packet(packet));
//!             self.again = Some(now + TIMEOUT);
//!         }
//!     }
//! }
//!
//! impl Machine for StopAndWait {
//!     fn handle(&mut self, now: Instant, port: Port, item: Item) {
//!         match (port, item) {
//!             (Port::Above(0), Item::Message(message)) => {
//!                 self.waiting.push_back(message.payload);
//!                 if self.waiting.len() == 1 {
//!                     self.transmit(now);
//!                 }
//!             }
//!             // Whatever else arrives is dropped: nothing from the network may panic.
//!             (Port::Below(0), Item::Packet(mut packet)) => match packet[..] {
//!                 [DATA, number, ..] => {
//!                     packet.advance(2);
//!                     if number == self.expected {
//!                         self.expected = self.expected.wrapping_add(1);
//!                         let message = Message::new(number.into(), packet);
//!                         self.out.up(Item::Message(message));
//!                     }
//!                     // Acknowledged even if it is old news: the acknowledgement may have been lost.
//!                     let ack = Buffer::copy_from(&[ACK, number]);
//!                     self.out.down(Item::Packet(ack));
//!                 }
//!                 [ACK, number] if number == self.sent && self.again.is_some() => {
//!                     self.waiting.pop_front();
//!                     self.sent = self.sent.wrapping_add(1);
//!                     self.transmit(now);
//!                 }
//!                 _ => {}
//!             },
//!             _ => {}
//!         }
//!     }
//!
//!     fn wake(&mut self, now: Instant) {
//!         if self.again.is_some_and(|at| at <= now) {
//!             self.transmit(now);
//!         }
//!     }
//!
//!     fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
//!         self.out.pop()
//!     }
//!
//!     fn deadline(&self) -> Option<Instant> {
//!         self.again
//!     }
//! }
//!
//! /// Puts an Ethernet header in front of each packet, and takes it off again.
//! #[derive(Default)]
//! struct Framing(Outbox);
//!
//! impl Reactive for Framing {
//!     fn react(&mut self, _now: Instant, _port: Port, item: Item) {
//!         match item {
//!             Item::Packet(mut packet) => {
//!                 packet.prepend(14).copy_from_slice(b"\x02----B\x02----A\x88\xb5");
//!                 let frame = Frame::new(packet);
//!                 self.0.down(Item::Frame(frame));
//!             }
//!             Item::Frame(mut frame) => {
//!                 frame.bytes.advance(14);
//!                 self.0.up(Item::Packet(frame.bytes));
//!             }
//!             _ => {}
//!         }
//!     }
//!
//!     fn next(&mut self) -> Option<(Port, Item)> {
//!         self.0.pop()
//!     }
//! }
//!
//! /// The two, plugged into each other.
//! fn stack() -> Assembly {
//!     let mut stack = Assembly::new();
//!     let upper = stack.add(Box::new(StopAndWait::default()));
//!     let lower = stack.add(Box::new(Framing::default()));
//!     stack.wire((upper, Port::Below(0)), (lower, Port::Above(0)));
//!     stack.expose((upper, Port::Above(0)), Port::Above(0));
//!     stack.expose((lower, Port::Below(0)), Port::Below(0));
//!     stack
//! }
//!
//! let direction = Direction {
//!     rate: Some("1 Mbit/s".parse()?),
//!     delay: "5 ms".parse()?,
//!     loss: Loss::Independent("30 %".parse()?),
//!     ..Direction::default()
//! };
//! let config = Config { forward: direction.clone(), backward: direction, ..Config::default() };
//! let seed = Seed::new(1, 0);
//! let streams = [seed.stream(&["a", "b"], 0), seed.stream(&["b", "a"], 0)];
//! let mut link = PointToPoint::new(config, streams);
//! let mut ends = [stack(), stack()];
//!
//! let mut now = Instant::ZERO;
//! for text in ["ahoy", "over", "out"] {
//!     let message = Message::new(0, Buffer::copy_from(text.as_bytes()));
//!     ends[0].handle(now, Port::Above(0), Item::Message(message));
//! }
//!
//! let mut received = Vec::new();
//! loop {
//!     // Carry everything that is said at this instant to where it goes.
//!     for (attachment, end) in ends.iter_mut().enumerate() {
//!         while let Some((_, item)) = end.poll(now) {
//!             match item {
//!                 Item::Frame(frame) => link.offer(now, attachment, frame.bytes),
//!                 Item::Message(message) => received.push(message.payload),
//!                 _ => unreachable!("the stack has no other ports"),
//!             }
//!         }
//!     }
//!     while let Some(event) = link.poll(now) {
//!         if let Event::Delivered { to, frame, overheard, reception, .. } = event {
//!             ends[to].handle(now, Port::Below(0), Item::Frame(Frame { bytes: frame, overheard, reception }));
//!         }
//!     }
//!     // Then go on to the next instant at which something is due.
//!     let deadlines = [ends[0].deadline(), ends[1].deadline(), link.deadline()];
//!     let Some(next) = deadlines.into_iter().flatten().min() else { break };
//!     now = now.max(next);
//!     link.wake(now);
//!     ends.iter_mut().for_each(|end| end.wake(now));
//! }
//!
//! let texts: Vec<&[u8]> = received.iter().map(|payload| &payload[..]).collect();
//! assert_eq!(texts, [&b"ahoy"[..], b"over", b"out"]);
//! # Ok::<(), QuantityError>(())
//! ```
