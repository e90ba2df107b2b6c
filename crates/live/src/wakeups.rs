//! Requests to the kernel for timely wake-ups.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU64;
use std::process::{Command, Stdio};

/// Requests timely wake-ups for the calling thread, as far as allowed; returns whether it got real-time priority.
pub(crate) fn request_timely_wakeups() -> bool {
    // With the default slack the kernel wakes a thread up to 50 µs late, to save power (prctl(2)).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // Links have priority over the programs that send over them and all others: the lowest real-time one is enough.
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let chrt = ["--fifo", "--pid", "1", thread.as_str()];
    let done = Command::new("chrt").args(chrt).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let done = done.is_ok_and(|status| status.success());
    if !done {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -20);
    }
    done
}

/// Keeps the processors awake while it exists.
///
/// An idle processor sleeps, and needs up to 100 µs to wake. In a virtual machine it goes back to the host, which may
/// take milliseconds to return it: links would have the lowest accuracy when they have little to do.
pub(crate) struct KeepAwake {
    /// The kernel grants the request while the file is open.
    asked: Option<File>,
}

impl KeepAwake {
    /// The kernel's interface for the maximum wake-up latency (`Documentation/power/pm_qos_interface`).
    const INTERFACE: &str = "/dev/cpu_dma_latency";

    /// Requests it, as far as allowed.
    pub(crate) fn keep() -> Self {
        let none = 0i32.to_ne_bytes();
        let ask = |mut file: File| file.write_all(&none).map(|()| file);
        Self { asked: OpenOptions::new().write(true).open(Self::INTERFACE).and_then(ask).ok() }
    }

    /// Whether the kernel accepted the request and has a driver that can fulfil it.
    pub(crate) fn is_granted(&self) -> bool {
        let driver = std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver");
        self.asked.is_some() && driver.is_ok_and(|driver| driver.trim() != "none")
    }
}
