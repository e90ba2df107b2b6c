//! Frames over one link, between packet sockets at its ends.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use hopcast_core::Duration;
use hopcast_node::Clock;
use hopcast_node::runtime::{discard_waiting, packet_socket};
use hopcast_stack::network::{NetworkPlan, interface_name};
use hopcast_twin::probe::{Check, LinkDirection};
use hopcast_twin::scenario::model::Scenario;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, eth, recv, send};

use super::{Refused, TRIES};
use crate::lab::Lab;
use crate::layout::MAX_FRAME;

/// Time from one frame to the next while none has arrived. Chosen: most links deliver within it.
const EVERY: Duration = Duration::from_millis(50);
/// Time for which the last frame is awaited.
const PATIENCE: Duration = Duration::from_secs(2);
/// Size of a socket's buffer, in bytes.
const BUFFER: usize = 1 << 20;

/// Sockets at both ends of a direction of a link.
pub(super) struct Ports {
    from: OwnedFd,
    to: OwnedFd,
}

impl Ports {
    pub(super) fn open(lab: &Lab, scenario: &Scenario, direction: &LinkDirection) -> Result<Self, Refused> {
        let plan = NetworkPlan::of(scenario.network());
        let open = |end: usize| -> Result<OwnedFd, Refused> {
            let (node, interface) = plan.ends(direction.link)[end];
            Ok(lab.enter(node, || port(&interface_name(interface)))??)
        };
        Ok(Self { from: open(direction.from)?, to: open(direction.to)? })
    }

    /// Sends frames until one arrives.
    pub(super) fn send(&self, direction: &LinkDirection, size: usize, check: &mut Check) -> io::Result<()> {
        let frame = direction.frame(size);
        discard_waiting(&self.to);
        while check.sent < TRIES && !check.passed {
            send(&self.from, &frame, SendFlags::empty())?;
            check.sent += 1;
            check.passed = self.arrives(&frame, EVERY)?;
        }
        check.passed = check.passed || self.arrives(&frame, PATIENCE)?;
        Ok(())
    }

    /// Whether the frame arrives within this time.
    fn arrives(&self, frame: &[u8], within: Duration) -> io::Result<bool> {
        let (clock, mut memory) = (Clock::starting_now(), vec![0; MAX_FRAME]);
        while wait(&self.to, clock, within)? {
            match recv(&self.to, &mut memory[..], RecvFlags::empty()) {
                Ok((_, length)) if &memory[..length] == frame => return Ok(true),
                Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}

/// Waits until a socket can be read; false once this time has passed since the clock's zero.
pub(super) fn wait(socket: &impl std::os::fd::AsFd, clock: Clock, within: Duration) -> io::Result<bool> {
    let left = clock.until(hopcast_core::Instant::ZERO + within);
    let nanos = left.as_nanos();
    let timeout =
        Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    Ok(poll(&mut polled, Some(&timeout))? > 0)
}

/// A packet socket at an interface of the calling thread's namespace. It is for all types of frames: the kernel drops
/// those to an interface that a service has taken, before it looks for sockets of their type.
fn port(name: &str) -> io::Result<OwnedFd> {
    let addresses = nix::ifaddrs::getifaddrs().map_err(io::Error::from)?;
    let mut links = addresses.filter(|of| of.interface_name == name);
    let link = links.find_map(|of| of.address?.as_link_addr().copied()).ok_or(io::ErrorKind::NotFound)?;
    let socket = packet_socket(eth::ALL, BUFFER)?;
    nix::sys::socket::bind(socket.as_raw_fd(), &link).map_err(io::Error::from)?;
    Ok(socket)
}
