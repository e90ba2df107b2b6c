//! A network of tests in virtual time: one link that all datagrams cross.

use hopcast_core::{Buffer, Datagram, Duration, Fraction, Instant, Seed};
use hopcast_link::config::{Config, Direction, Loss};
use hopcast_link::{Event, Link, PointToPoint};

/// Datagrams under way, of which a share is lost.
pub(crate) struct TestNetwork {
    link: PointToPoint,
    /// Every datagram that was sent; a frame is a number among them.
    sent: Vec<Datagram>,
}

impl TestNetwork {
    pub(crate) fn new(seed: u64, delay: Duration, loss: f64) -> Self {
        let loss = Loss::Independent(Fraction::new(loss).unwrap());
        let forward = Direction { delay, loss, ..Direction::default() };
        let seed = Seed::new(seed, 0);
        let streams = [0, 1].map(|way| seed.stream(&["net"], way));
        Self { link: PointToPoint::new(Config { forward, ..Config::default() }, streams), sent: Vec::new() }
    }

    /// Sends a datagram from this address to its remote one.
    pub(crate) fn send(&mut self, now: Instant, from: std::net::SocketAddr, datagram: Datagram) {
        self.link.offer(now, 0, Buffer::copy_from(&self.sent.len().to_be_bytes()));
        self.sent.push(Datagram::new(datagram.remote, from, datagram.payload));
    }

    /// The next datagram that has arrived by now, as its receiver gets it.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<Datagram> {
        self.link.wake(now);
        let Some(Event::Delivered { frame, .. }) = self.link.poll(now) else { return None };
        let number = usize::from_be_bytes(frame[..].try_into().unwrap());
        Some(self.sent[number].clone())
    }
}
