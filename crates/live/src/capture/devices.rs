//! Capture of the devices of machines at nodes, whose packets cross no link.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::JoinHandle;

use hopcast_core::{Buffer, Duration, Instant};
use hopcast_node::Clock;
use hopcast_node::runtime::{Stop, discard_waiting, packet_socket};
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::eth;
use rustix::time::{ClockId, clock_gettime};
use socket2::{SockFilter, SockRef};

use super::{Error, FrameEvent, Record, Recorder};
use crate::lab::Lab;
use crate::layout::{Captured, MAX_FRAME};

/// Size of the kernel's buffer of captured packets for each device, in bytes. Chosen; with less, packets are lost to
/// the capture while its thread waits for the processor.
const RECEIVE_BUFFER: usize = 16 << 20;
/// Maximum number of packets read from one device before the others get their turn. Chosen; more lets the others'
/// buffers fill, fewer costs system calls.
const PACKETS_PER_ROUND: usize = 64;
/// Packet type of packets that the host itself sends (`PACKET_OUTGOING` of packet(7)).
const OUTGOING: u8 = 4;

/// A thread that captures at devices. It ends with [`finish`](Self::finish), or when this is dropped.
pub struct Devices {
    /// `None` if there is no device to capture at.
    thread: Option<JoinHandle<Result<(), Error>>>,
    stop: Stop,
}

impl Devices {
    /// Captures at the interfaces that no link captures; they must exist.
    ///
    /// # Errors
    /// The first interface that cannot be captured.
    pub fn listen(
        lab: &Lab,
        interfaces: &[Captured],
        clock: Clock,
        recorder: Recorder,
    ) -> Result<Self, Error> {
        let mut sockets = Vec::new();
        for (interface, captured) in interfaces.iter().enumerate().filter(|(_, captured)| !captured.by_link) {
            let Captured { node, name, .. } = captured;
            let socket = lab.enter(*node, || open(name))?;
            let socket = socket.map_err(|source| Error::Device { device: name.clone(), source })?;
            sockets.push(DeviceSocket { socket, interface, name: name.clone() });
        }
        let mut devices = Self { thread: None, stop: Stop::new().map_err(Error::Devices)? };
        if !sockets.is_empty() {
            let stop = devices.stop.clone();
            let thread = std::thread::Builder::new().name("devices".to_owned());
            let thread =
                thread.spawn(move || receive(&sockets, &stop, clock, &recorder)).map_err(Error::Devices)?;
            devices.thread = Some(thread);
        }
        Ok(devices)
    }

    /// Records the packets that have passed until now, and ends.
    ///
    /// # Errors
    /// [`Error::Missed`], if the kernel's buffer was too small to hold all packets until they were read. A loss after
    /// the last packet in the buffer is not reported.
    pub fn finish(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.stop.request();
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
struct DeviceSocket {
    socket: OwnedFd,
    interface: usize,
    name: String,
}

/// A packet socket for the packets of `device`. A TUN device has no address to bind the socket to without unsafe code,
/// so a filter in the kernel selects its packets.
fn open(device: &str) -> std::io::Result<OwnedFd> {
    let index = nix::net::if_::if_nametoindex(device)?;
    let socket = packet_socket(eth::ALL, RECEIVE_BUFFER)?;
    SockRef::from(&socket).attach_filter(&passes(index))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    discard_waiting(&socket);
    Ok(socket)
}

/// A filter for the packets of the interface `index`: classic BPF (bpf(4)), with Linux' extension `ifindex`.
fn passes(index: u32) -> [SockFilter; 4] {
    // Instructions: BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K.
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

/// Records the packets at `sockets` until `stop` is requested, and then those that have passed by then.
fn receive(sockets: &[DeviceSocket], stop: &Stop, clock: Clock, recorder: &Recorder) -> Result<(), Error> {
    let mut memory = vec![0; MAX_FRAME];
    let mut end = None;
    while end.is_none() {
        let stopped = stop.as_fd();
        let mut ready: Vec<_> =
            sockets.iter().map(|socket| PollFd::new(&socket.socket, PollFlags::IN)).collect();
        ready.push(PollFd::new(&stopped, PollFlags::IN));
        // All sockets are read after each wait.
        let _ = poll(&mut ready, None);
        end = stop.is_requested().then(|| clock.now());
        for socket in sockets {
            // A socket with packets left waits for the next round; in the last round it is read up to the end.
            while let Some(latest) = socket.receive(clock, recorder, &mut memory)?
                && end.is_some_and(|end| latest < end)
            {}
        }
    }
    Ok(())
}

impl DeviceSocket {
    /// Records a bounded number of packets; if there may be more, returns the time of the last one.
    fn receive(
        &self,
        clock: Clock,
        recorder: &Recorder,
        memory: &mut [u8],
    ) -> Result<Option<Instant>, Error> {
        let offset = ClockOffset::of(clock);
        let mut control = nix::cmsg_space!(TimeSpec, u32);
        let mut latest = Instant::ZERO;
        for _ in 0..PACKETS_PER_ROUND {
            let socket = self.socket.as_raw_fd();
            let mut room = [IoSliceMut::new(memory)];
            let heard = match recvmsg::<LinkAddr>(socket, &mut room, Some(&mut control), MsgFlags::empty()) {
                Ok(heard) => heard,
                Err(nix::errno::Errno::EAGAIN) => return Ok(None),
                Err(error) => return Err(Error::Device { device: self.name.clone(), source: error.into() }),
            };
            // Number of packets for which the kernel had no room.
            let mut missed = 0;
            for control in heard.cmsgs().into_iter().flatten() {
                match control {
                    ControlMessageOwned::ScmTimestampns(stamp) => latest = offset.instant(stamp),
                    ControlMessageOwned::RxqOvfl(count) => missed = count,
                    _ => {}
                }
            }
            let sent = heard.address.is_some_and(|from| from.pkttype() == OUTGOING);
            let length = heard.bytes;
            let record = Record {
                at: latest,
                interface: self.interface,
                what: if sent { FrameEvent::Sent } else { FrameEvent::Received { from: None } },
                bytes: Buffer::copy_from(&memory[..length]),
            };
            // A packet goes into a device after it was received, and comes out before it is sent.
            let order = if sent { latest + ClockOffset::TOLERANCE } else { latest - ClockOffset::TOLERANCE };
            recorder.record(order, vec![record]);
            if missed > 0 {
                return Err(Error::Missed { device: self.name.clone(), packets: missed });
            }
        }
        Ok(Some(latest))
    }
}

/// Offset from the clock with which the kernel stamps packets, the real-time clock, to the run's clock, in nanoseconds.
struct ClockOffset(i128);

impl ClockOffset {
    /// By how much the offset may be wrong, where readings were close to each other.
    const TOLERANCE: Duration = Duration::from_nanos(Self::CLOSE as u64);
    /// Maximum time between two readings of one clock, in nanoseconds. Chosen: with more, another thread may have had
    /// the processor in between; with less, a slow machine never succeeds.
    const CLOSE: i128 = 20_000;

    /// The current offset, from readings of both clocks that are close to each other.
    fn of(clock: Clock) -> Self {
        /// Maximum number of tries, of which the closest counts. Chosen: with fewer, all may be interrupted on a busy
        /// machine; more delay the start.
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
        let (mut best, mut offset) = (i128::MAX, 0);
        for (apart, difference) in tries {
            if apart < best {
                (best, offset) = (apart, difference);
            }
            if best < Self::CLOSE {
                break;
            }
        }
        Self(offset + i128::from(clock.zero()))
    }

    /// Time of a packet on the run's clock, which stands at zero before the run.
    fn instant(&self, stamp: TimeSpec) -> Instant {
        let day = i128::from(stamp.tv_sec()) * 1_000_000_000 + i128::from(stamp.tv_nsec());
        Instant::from_nanos(u64::try_from(day - self.0).unwrap_or(0))
    }
}
