//! The two sides of an interface: a device in a node's kernel, and a descriptor to read its frames from.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::Error;

/// A TAP device, which is removed when this is dropped.
pub struct Tap {
    device: SyncDevice,
}

impl Tap {
    /// Makes `eth<number>` in the network namespace of the calling thread; it stays there, whoever holds the `Tap`.
    ///
    /// The device offers the kernel no offloads: each frame fits the link and has its checksums.
    pub(super) fn create(number: usize) -> Result<Self, Error> {
        let device = DeviceBuilder::new()
            .name(format!("eth{number}"))
            .layer(Layer::L2)
            .offload(false)
            .packet_information(false)
            .inherit_enable_state()
            .build_sync()
            .and_then(|device| device.set_nonblocking(true).map(|()| device))
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::NoTun,
                _ => Error::Tap(error),
            })?;
        Ok(Self { device })
    }

    /// Reads the next frame that the node sends; `WouldBlock` if there is none.
    #[inline]
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.device.recv(into)
    }

    /// Delivers a frame to the node. Its kernel processes the frame at once, on the calling thread: up to the socket,
    /// or on to the next interface.
    #[inline]
    pub(crate) fn write(&self, frame: &[u8]) -> io::Result<usize> {
        self.device.send(frame)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
