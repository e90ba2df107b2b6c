//! What a program can ask of the machine so that it is woken when it wants to be.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU64;
use std::process::{Command, Stdio};

/// Lets the calling thread come when it wants to, as far as that is allowed, and says whether it may before all others.
pub(crate) fn request_timely_wakeups() -> bool {
    // Otherwise the kernel wakes us up to 50 µs late, to save power.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // The links come before the programs that send over them, and before what else the machine does. The lowest
    // real-time priority is enough for that, where we may have it.
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let chrt = ["--fifo", "--pid", "1", thread.as_str()];
    let done = Command::new("chrt").args(chrt).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let done = done.is_ok_and(|status| status.success());
    if !done {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -20);
    }
    done
}

/// Keeps the processors awake for as long as it lives.
///
/// One that has nothing to do sleeps, and needs up to a hundred microseconds to wake. In a virtual machine it is given
/// back to the host, which may take milliseconds to return it: links are then least exact when they have least to do.
pub(crate) struct KeepAwake {
    /// The kernel holds to what was asked for while the file is open.
    asked: Option<File>,
}

impl KeepAwake {
    /// The kernel's interface for the longest time to wake that a program can bear
    /// (`Documentation/power/pm_qos_interface`).
    const INTERFACE: &str = "/dev/cpu_dma_latency";

    /// Asks for it, as far as that is allowed.
    pub(crate) fn keep() -> Self {
        let none = 0i32.to_ne_bytes();
        let ask = |mut file: File| file.write_all(&none).map(|()| file);
        Self { asked: OpenOptions::new().write(true).open(Self::INTERFACE).and_then(ask).ok() }
    }

    /// Whether the kernel agreed, and has a driver by which it can.
    pub(crate) fn is_granted(&self) -> bool {
        let driver = std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver");
        self.asked.is_some() && driver.is_ok_and(|driver| driver.trim() != "none")
    }
}
