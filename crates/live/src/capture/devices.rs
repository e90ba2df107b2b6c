//! What passes the devices that machines have at their nodes, and no link sees.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::JoinHandle;

use hopcast_core::{Buffer, Instant};
use hopcast_node::Clock;
use hopcast_node::runtime::{Stop, forget, packet_socket};
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::eth;
use rustix::time::{ClockId, clock_gettime};
use socket2::{SockFilter, SockRef};

use super::{Error, Record, Recorder, What};
use crate::emulator::LONGEST;
use crate::lab::Lab;
use crate::layout::Captured;

/// What the kernel may hold for us to read of one device, in bytes.
const RECEIVE_BUFFER: usize = 16 << 20;
/// The most packets of one device that are read before the others get their turn.
const AT_ONCE: usize = 64;
/// What the host itself sends (`PACKET_OUTGOING` of packet(7)).
const OUTGOING: u8 = 4;

/// A thread that listens at devices, until this is dropped at the latest.
pub struct Devices {
    /// None if there is nothing to listen at.
    thread: Option<JoinHandle<Result<(), Error>>>,
    stop: Stop,
}

impl Devices {
    /// Listens at those of the interfaces that no link hands over; they must be there.
    ///
    /// # Errors
    /// The first of them that cannot be listened to.
    pub fn listen(
        lab: &Lab,
        interfaces: &[Captured],
        clock: Clock,
        recorder: Recorder,
    ) -> Result<Self, Error> {
        let mut ears = Vec::new();
        for (interface, captured) in interfaces.iter().enumerate().filter(|(_, captured)| !captured.by_link) {
            let Captured { node, name, .. } = captured;
            let socket = lab.enter(*node, || open(name))?;
            let socket = socket.map_err(|source| Error::Device { device: name.clone(), source })?;
            ears.push(Ear { socket, interface, name: name.clone() });
        }
        let mut devices = Self { thread: None, stop: Stop::new().map_err(Error::Devices)? };
        if !ears.is_empty() {
            let stop = devices.stop.clone();
            let thread = std::thread::Builder::new().name("devices".to_owned());
            let thread =
                thread.spawn(move || hear(&ears, &stop, clock, &recorder)).map_err(Error::Devices)?;
            devices.thread = Some(thread);
        }
        Ok(devices)
    }

    /// Hands over what has passed until now, and ends.
    ///
    /// # Errors
    /// [`Error::Missed`], if the kernel had no room to keep all of it until it was read. What it could not keep after
    /// the last packet that it kept, it does not tell.
    pub fn finish(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.stop.pull();
        let joined = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        joined.unwrap_or(Err(Error::Panicked("listens at devices")))
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A packet socket at one device.
struct Ear {
    socket: OwnedFd,
    interface: usize,
    name: String,
}

/// A packet socket for what passes `device`. A TUN device has no address of its own, and there is no other to bind the
/// socket to without unsafe code: so the kernel filters.
fn open(device: &str) -> std::io::Result<OwnedFd> {
    let index = nix::net::if_::if_nametoindex(device)?;
    let socket = packet_socket(eth::ALL, RECEIVE_BUFFER)?;
    SockRef::from(&socket).attach_filter(&passes(index))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    forget(&socket);
    Ok(socket)
}

/// A filter for what passes the interface of this number: classic BPF (bpf(4)), with Linux' extension `ifindex`.
fn passes(index: u32) -> [SockFilter; 4] {
    const LOAD_WORD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// `SKF_AD_OFF` and `SKF_AD_IFINDEX` of Linux' `filter.h`.
    const IFINDEX: u32 = 0xffff_f000 + 8;
    [
        SockFilter::new(LOAD_WORD, 0, 0, IFINDEX),
        SockFilter::new(IF_EQUAL, 0, 1, index),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}

/// Hands over what `ears` hear until `stop` is pulled, and then what they have heard by then.
fn hear(ears: &[Ear], stop: &Stop, clock: Clock, recorder: &Recorder) -> Result<(), Error> {
    let mut memory = vec![0; LONGEST];
    let mut end = None;
    while end.is_none() {
        let stopped = stop.as_fd();
        let mut ready: Vec<_> = ears.iter().map(|ear| PollFd::new(&ear.socket, PollFlags::IN)).collect();
        ready.push(PollFd::new(&stopped, PollFlags::IN));
        // Whatever ends it, all of them are looked at.
        let _ = poll(&mut ready, None);
        end = stop.is_pulled().then(|| clock.now());
        for ear in ears {
            // Those that are full again before they are empty wait for the next round, or go on until that was the end.
            while let Some(latest) = ear.hear(clock, recorder, &mut memory)?
                && end.is_some_and(|end| latest < end)
            {}
        }
    }
    Ok(())
}

impl Ear {
    /// Hands over a bounded lot; if there may be more, says when the last of it passed.
    fn hear(&self, clock: Clock, recorder: &Recorder, memory: &mut [u8]) -> Result<Option<Instant>, Error> {
        let ahead = Ahead::of(clock);
        let mut control = nix::cmsg_space!(TimeSpec, u32);
        let mut latest = Instant::ZERO;
        for _ in 0..AT_ONCE {
            let socket = self.socket.as_raw_fd();
            let mut room = [IoSliceMut::new(memory)];
            let heard = match recvmsg::<LinkAddr>(socket, &mut room, Some(&mut control), MsgFlags::empty()) {
                Ok(heard) => heard,
                Err(nix::errno::Errno::EAGAIN) => return Ok(None),
                Err(error) => return Err(Error::Device { device: self.name.clone(), source: error.into() }),
            };
            // For so many the kernel has had no room.
            let mut missed = 0;
            for control in heard.cmsgs().into_iter().flatten() {
                match control {
                    ControlMessageOwned::ScmTimestampns(stamp) => latest = ahead.instant(stamp),
                    ControlMessageOwned::RxqOvfl(count) => missed = count,
                    _ => {}
                }
            }
            let sent = heard.address.is_some_and(|from| from.pkttype() == OUTGOING);
            let length = heard.bytes;
            recorder.record(vec![Record {
                at: latest,
                interface: self.interface,
                what: if sent { What::Sent } else { What::Received },
                bytes: Buffer::copy_from(&memory[..length]),
            }]);
            if missed > 0 {
                return Err(Error::Missed { device: self.name.clone(), packets: missed });
            }
        }
        Ok(Some(latest))
    }
}

/// By how much the clock with which the kernel dates packets, that of the day, is ahead of the run's, in nanoseconds.
struct Ahead(i128);

impl Ahead {
    /// By both clocks now, as good as at once.
    fn of(clock: Clock) -> Self {
        const AT_ONCE: i128 = 20_000;
        const TRIES: usize = 8;
        let now = |clock| {
            let time = clock_gettime(clock);
            i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
        };
        let tries = (0..TRIES).map(|_| {
            let (before, day, after) =
                (now(ClockId::Monotonic), now(ClockId::Realtime), now(ClockId::Monotonic));
            (after - before, day - (before + after) / 2)
        });
        let (mut best, mut ahead) = (i128::MAX, 0);
        for (apart, difference) in tries {
            if apart < best {
                (best, ahead) = (apart, difference);
            }
            if best < AT_ONCE {
                break;
            }
        }
        Self(ahead + i128::from(clock.zero()))
    }

    /// When a packet passed; before the run begins the clock stands at zero.
    fn instant(&self, stamp: TimeSpec) -> Instant {
        let day = i128::from(stamp.tv_sec()) * 1_000_000_000 + i128::from(stamp.tv_nsec());
        Instant::from_nanos(u64::try_from(day - self.0).unwrap_or(0))
    }
}
