//! What passes the devices that machines have at their nodes, and no link sees.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::JoinHandle;

use hopcast_core::{Buffer, Duration, Instant};
use hopcast_node::Clock;
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt, sockopt as nix_sockopt,
};
use nix::sys::time::TimeSpec;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{AddressFamily, Protocol, RawProtocol, RecvFlags, SocketFlags, SocketType, sockopt};
use rustix::time::{ClockId, clock_gettime};
use socket2::{SockFilter, SockRef};

use super::{Record, Recorder, What};
use crate::lab::Lab;
use crate::layout::Captured;

/// What the kernel may hold for us to read of one device, in bytes.
const RECEIVE_BUFFER: usize = 16 << 20;
/// The longest frame: the longest packet, after Ethernet's header.
const LONGEST: usize = 65_535 + 14;
/// The most packets of one device that are handed over at once.
const AT_ONCE: usize = 64;
/// Every protocol (`ETH_P_ALL` of packet(7)), in the order of the network.
const ALL: u16 = 3u16.to_be();
/// What the host itself sends (`PACKET_OUTGOING` of packet(7)).
const OUTGOING: u8 = 4;

/// A thread that listens at devices.
pub struct Devices {
    thread: JoinHandle<Result<(), String>>,
    stop: OwnedFd,
}

impl Devices {
    /// Listens at those of the interfaces that no link hands over; they must be there.
    ///
    /// # Errors
    /// One line, if one of them cannot be listened at.
    pub fn listen(
        lab: &Lab,
        interfaces: &[Captured],
        clock: Clock,
        recorder: Recorder,
    ) -> Result<Self, String> {
        let mut ears = Vec::new();
        for (interface, captured) in interfaces.iter().enumerate().filter(|(_, captured)| !captured.by_link) {
            let Captured { node, name, .. } = captured;
            let socket = lab.enter(*node, || open(name))?;
            let socket = socket.map_err(|why| format!("cannot capture `{name}`: {why}"))?;
            ears.push(Ear { socket, interface, name: name.clone(), gone: false, missed: 0 });
        }
        let failed = |error: std::io::Error| format!("cannot capture: {error}");
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let stopped = stop.try_clone().map_err(failed)?;
        let thread = std::thread::Builder::new().name("devices".to_owned());
        let thread = thread.spawn(move || hear(ears, &stopped, clock, &recorder)).map_err(failed)?;
        Ok(Self { thread, stop })
    }

    /// Hands over what has passed until now, and ends.
    ///
    /// # Errors
    /// One line, if the kernel had no room to keep all of it until it was read.
    pub fn finish(self) -> Result<(), String> {
        // It counts up from zero: this cannot block.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        self.thread.join().unwrap_or_else(|_| Err("the thread that listens at devices panicked".to_owned()))
    }
}

/// A packet socket at one device.
struct Ear {
    socket: OwnedFd,
    interface: usize,
    name: String,
    /// The device was removed.
    gone: bool,
    missed: u32,
}

/// A packet socket for what passes `device`. Without an address of its own, as a TUN device is, it cannot be bound to:
/// so the kernel filters.
fn open(device: &str) -> Result<OwnedFd, String> {
    let failed = |error: rustix::io::Errno| std::io::Error::from(error).to_string();
    let index = nix::net::if_::if_nametoindex(device).map_err(|error| error.desc().to_owned())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = RawProtocol::new(ALL.into()).map(Protocol::from_raw);
    let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, protocol);
    let socket = socket.map_err(failed)?;
    let filter = passes(index);
    SockRef::from(&socket).attach_filter(&filter).map_err(|error| error.to_string())?;
    if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER).map_err(failed)?;
    }
    setsockopt(&socket, nix_sockopt::ReceiveTimestampns, &true).map_err(|error| error.desc().to_owned())?;
    setsockopt(&socket, nix_sockopt::RxqOvfl, &1).map_err(|error| error.desc().to_owned())?;
    // What came before there was a filter.
    let mut memory = vec![0; LONGEST];
    while rustix::net::recv(&socket, &mut memory[..], RecvFlags::empty()).is_ok() {}
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

/// Hands over what `ears` hear until `stop` can be read, and then what they have heard by then.
fn hear(mut ears: Vec<Ear>, stop: &OwnedFd, clock: Clock, recorder: &Recorder) -> Result<(), String> {
    let mut memory = vec![0; LONGEST];
    loop {
        ears.retain(|ear| !ear.gone);
        let mut ready: Vec<_> = ears.iter().map(|ear| PollFd::new(&ear.socket, PollFlags::IN)).collect();
        ready.push(PollFd::new(stop, PollFlags::IN));
        // Whatever ends it, all of them are looked at.
        let _ = poll(&mut ready, None);
        let last = ready.last().is_some_and(|stop| stop.revents().contains(PollFlags::IN));
        for ear in &mut ears {
            while ear.hear(clock, recorder, &mut memory) == AT_ONCE {}
            if ear.missed > 0 {
                return Err(format!("{} packets of `{}` were not kept", ear.missed, ear.name));
            }
        }
        if last {
            return Ok(());
        }
    }
}

impl Ear {
    /// Hands over a bounded lot, and says how many packets.
    fn hear(&mut self, clock: Clock, recorder: &Recorder, memory: &mut [u8]) -> usize {
        let moment = Moment::now(clock);
        for count in 0..AT_ONCE {
            let mut room = [IoSliceMut::new(memory)];
            let mut control = nix::cmsg_space!(TimeSpec, u32);
            let heard = recvmsg::<LinkAddr>(
                self.socket.as_raw_fd(),
                &mut room,
                Some(&mut control),
                MsgFlags::empty(),
            );
            let (length, from, stamp) = match heard {
                Ok(heard) => {
                    let mut stamp = None;
                    for control in heard.cmsgs().into_iter().flatten() {
                        match control {
                            ControlMessageOwned::ScmTimestampns(at) => stamp = Some(at),
                            ControlMessageOwned::RxqOvfl(missed) => self.missed = missed,
                            _ => {}
                        }
                    }
                    (heard.bytes, heard.address, stamp)
                }
                Err(error) => {
                    self.gone = error != nix::errno::Errno::EAGAIN;
                    return count;
                }
            };
            let sent = from.is_some_and(|from| from.pkttype() == OUTGOING);
            recorder.record(vec![Record {
                at: stamp.map_or(moment.by_clock, |stamp| moment.at(stamp)),
                interface: self.interface,
                what: if sent { What::Sent } else { What::Received },
                bytes: Buffer::copy_from(&memory[..length]),
            }]);
        }
        AT_ONCE
    }
}

/// One moment by the run's clock, and by that with which the kernel dates packets.
struct Moment {
    by_clock: Instant,
    /// Nanoseconds since 1970.
    by_kernel: i128,
}

impl Moment {
    fn now(clock: Clock) -> Self {
        let time = clock_gettime(ClockId::Realtime);
        Self { by_clock: clock.now(), by_kernel: nanos(time.tv_sec, time.tv_nsec) }
    }

    /// When that was by the run's clock.
    fn at(&self, stamp: TimeSpec) -> Instant {
        let before = self.by_kernel - nanos(stamp.tv_sec(), stamp.tv_nsec());
        match u64::try_from(before) {
            Ok(before) => Instant::from_nanos(self.by_clock.as_nanos().saturating_sub(before)),
            // It has come since.
            Err(_) => self.by_clock + Duration::from_nanos(u64::try_from(-before).unwrap_or(0)),
        }
    }
}

fn nanos(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}
