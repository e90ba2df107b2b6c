//! An interface that the kernel gives up to a packet socket: the socket receives every frame with its tags, and the
//! kernel itself neither answers nor forwards any.
//!
//! The kernel copies a frame to packet sockets first, and drops it in a rule at the ingress of the interface: neither
//! its IP stack nor a bridge of its own sees one. IPv6 is off on the interface, so that nothing speaks for itself
//! there. The kernel takes the outermost tag off every frame, and reports it beside the rest.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use hopcast_wire::vlan::{CUSTOMER, TAG};
use nix::libc;
use nix::sys::socket::sockopt::SetStruct;
use nix::sys::socket::{ControlMessageOwned, setsockopt};

use super::error::PlugError;
use super::rules::Rules;

/// Length of the two addresses of a frame, behind which its tags are.
const ADDRESSES: usize = 12;

/// An interface that the kernel gives up while this exists.
pub(super) struct Taken {
    /// What is as it was once this is dropped.
    _rules: Rules,
    _silence: Silence,
}

impl Taken {
    /// Takes an interface, which exists.
    pub(super) fn new(interface: &str) -> Result<Self, PlugError> {
        if let Some(address) = address(interface)? {
            return Err(PlugError::HasAddress { interface: interface.to_owned(), address });
        }
        let silence = Silence::of(interface)?;
        let mut rules = Rules::claim()?;
        let table = rules.named().table();
        let name = if silence.path.is_some() { SILENCED } else { "taken" };
        let chain = format!("type filter hook ingress device \"{interface}\" priority 0; policy drop;");
        // The family `inet` would let pass all that is not IP.
        rules.filter_frames(&format!("table netdev {table} {{\nchain {name} {{ {chain} }}\n}}\n"))?;
        Ok(Self { _rules: rules, _silence: silence })
    }
}

/// The name of the nft chain of an interface that had IPv6 before it was taken.
const SILENCED: &str = "silenced";

/// Turns IPv6 on again at an interface that a killed process had taken; `table` is its nft table, and `others` are all
/// others. What one of them has taken since stays silent.
pub(crate) fn give_back(table: &str, others: &str) {
    let Some((_, chain)) = table.split_once(&format!("chain {SILENCED} ")) else { return };
    let Some(interface) = chain.split('"').nth(1) else { return };
    if !others.contains(&format!("device \"{interface}\"")) {
        // The interface may be gone.
        let _ = fs::write(ipv6_switch(interface), "0");
    }
}

/// The file that turns IPv6 off on an interface.
fn ipv6_switch(interface: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
}

/// An address of the host on an interface, but for IPv6's own of the link.
fn address(interface: &str) -> io::Result<Option<IpAddr>> {
    let all = nix::ifaddrs::getifaddrs()?.filter(|found| found.interface_name == interface);
    let mut addresses = all.filter_map(|found| {
        let address = found.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    Ok(addresses.find(|address| !matches!(address, IpAddr::V6(own) if own.is_unicast_link_local())))
}

/// An interface without IPv6, until this is dropped.
struct Silence {
    /// The setting of an interface that had IPv6.
    path: Option<String>,
}

impl Silence {
    fn of(interface: &str) -> Result<Self, PlugError> {
        let path = ipv6_switch(interface);
        match fs::read_to_string(&path) {
            Ok(off) if off.trim() == "0" => {
                fs::write(&path, "1").map_err(|source| PlugError::Setting {
                    interface: interface.to_owned(),
                    setting: "disable_ipv6",
                    source,
                })?;
                Ok(Self { path: Some(path) })
            }
            // It is off already, or this kernel has none.
            _ => Ok(Self { path: None }),
        }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The interface may be gone.
            let _ = fs::write(path, "0");
        }
    }
}

/// Lets a packet socket report the tags that the kernel takes off, and not receive what leaves by the interface.
pub(super) fn report_tags(socket: &OwnedFd, interface: &str) -> Result<(), PlugError> {
    let failed = |setting| {
        let interface = interface.to_owned();
        move |error: nix::Error| PlugError::Setting { interface, setting, source: error.into() }
    };
    setsockopt(socket, AuxiliaryData, &1).map_err(failed("PACKET_AUXDATA"))?;
    setsockopt(socket, IgnoreOutgoing, &1).map_err(failed("PACKET_IGNORE_OUTGOING"))
}

/// The tag that the kernel took off a frame, as the bytes that it had, from one of the frame's control messages.
///
/// They are `struct tpacket_auxdata` of `linux/if_packet.h`: four bytes of status, eight of lengths and four of
/// offsets, then the tag's content and type.
pub(super) fn tag_of(control: &ControlMessageOwned) -> Option<[u8; TAG]> {
    let ControlMessageOwned::Unknown(control) = control else { return None };
    let header = &control.cmsg_header;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_PACKET, PACKET_AUXDATA) {
        return None;
    }
    let data = &control.data_bytes;
    let status = u32::from_ne_bytes(data.get(..4)?.try_into().ok()?);
    let half = |at: usize| Some(u16::from_ne_bytes(data.get(at..at + 2)?.try_into().ok()?));
    if status & VLAN_VALID == 0 {
        return None;
    }
    // Without a type it is a tag of IEEE 802.1Q.
    let kind = if status & VLAN_TYPE_VALID == 0 { CUSTOMER } else { half(18)? };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), half(16)?.to_be_bytes());
    Some([a, b, c, d])
}

/// Puts a tag back into a frame that begins [`TAG`] bytes into `memory`, so that it begins at its start.
pub(super) fn put_tag_back(memory: &mut [u8], tag: [u8; TAG]) {
    memory.copy_within(TAG..TAG + ADDRESSES, 0);
    memory[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
}

/// Length of `struct tpacket_auxdata`.
pub(super) const AUXILIARY: usize = 20;
/// `TP_STATUS_VLAN_VALID`: a tag was taken off.
const VLAN_VALID: u32 = 1 << 4;
/// `TP_STATUS_VLAN_TPID_VALID`: its type is said, too.
const VLAN_TYPE_VALID: u32 = 1 << 6;
const PACKET_AUXDATA: libc::c_int = 8;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

macro_rules! option {
    ($name:ident, $option:path) => {
        #[derive(Clone, Copy)]
        struct $name;
        nix::setsockopt_impl!($name, libc::SOL_PACKET, $option, libc::c_int, SetStruct<'_, libc::c_int>);
    };
}

option!(AuxiliaryData, PACKET_AUXDATA);
option!(IgnoreOutgoing, PACKET_IGNORE_OUTGOING);
