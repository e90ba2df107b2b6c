//! The ingress of packets that are handed back to the host: a TUN device, from which the kernel receives them as from
//! any link.

use std::fs;

use hopcast_core::Buffer;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::super::command::ip;
use super::super::error::PlugError;

/// The device group (`ip link`) of these devices, by which rules recognise a packet that was taken before: "hc" in
/// ASCII.
pub(super) const GROUP: u32 = 0x6863;

/// The IPv4 dummy address (RFC 7600 section 4.8), for a device that needs one.
const DUMMY: &str = "192.0.0.8/32";

/// The TUN device by which packets are handed back. It is removed when this is dropped.
pub(super) struct IngressDevice(SyncDevice);

impl IngressDevice {
    pub(super) fn open(name: &str) -> Result<Self, PlugError> {
        let device = DeviceBuilder::new().name(name).enable(false).build_sync()?;
        device.set_nonblocking(true)?;
        ip(&format!("link set dev {name} group {GROUP} addrgenmode none multicast off"))?;
        // Each setting exists if the kernel has the IP version, and is removed with the device.
        let setting = |path: &str| fs::read_to_string(format!("/proc/sys/net/{path}"));
        let set = |version: &str, key: &str, value: &str| {
            let _ = fs::write(format!("/proc/sys/net/{version}/conf/{name}/{key}"), value);
        };
        set("ipv6", "disable_ipv6", "0");
        // Packets here have any source. Where the host checks sources on all interfaces, a single one can at most relax
        // the check to the loose mode, which drops all packets of an interface without an address.
        let checks = setting("ipv4/conf/all/rp_filter").is_ok_and(|all| all.trim() != "0");
        set("ipv4", "rp_filter", if checks { "2" } else { "0" });
        if checks {
            ip(&format!("address add {DUMMY} dev {name} scope host"))?;
        }
        set("ipv4", "accept_local", "1");
        set("ipv4", "forwarding", setting("ipv4/ip_forward").as_deref().unwrap_or("0").trim());
        ip(&format!("link set dev {name} mtu 65535 up"))?;
        Ok(Self(device))
    }

    /// Lets the host receive a packet.
    pub(super) fn give(&self, packet: &Buffer) -> std::io::Result<()> {
        self.0.send(packet).map(drop)
    }
}
