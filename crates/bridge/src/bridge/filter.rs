//! VLAN filtering: which VLAN a frame belongs to, and the form in which a port is given it (IEEE 802.1Q-2022 section
//! 8).

use std::collections::BTreeMap;

use hopcast_core::Buffer;
use hopcast_wire::vlan::{self, Tag};

use super::config::BridgePort;
use super::ports::PortSet;

/// The VLANs of a bridge's ports.
#[derive(Debug)]
pub(super) struct Filter {
    /// The type of the tags.
    protocol: u16,
    /// For each port, the VLAN of frames without a tag.
    native: Vec<Option<u16>>,
    vlans: BTreeMap<u16, VlanPorts>,
}

/// The ports of a VLAN.
#[derive(Debug)]
pub(super) struct VlanPorts {
    /// Those that take and are given its frames.
    pub(super) members: PortSet,
    /// Those of them that are given its frames without a tag.
    untagged: PortSet,
}

/// The VLAN of a frame, and how the frame says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// The VLAN; 0 on a bridge that knows none.
    pub(super) vlan: u16,
    /// How the frame says so.
    pub(super) form: Form,
}

/// How a frame says to which VLAN it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It has no tag of the bridge's type, and is of the native VLAN.
    Untagged,
    /// Its tag has VLAN 0, and only gives a priority: it is of the native VLAN.
    Priority,
    /// By its tag.
    Tagged,
}

/// Reason for which a frame is not taken from a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has no tag, and the port has no native VLAN.
    NoNative,
    /// The port is not in its VLAN.
    NotAllowed,
}

impl Filter {
    /// The VLANs of these ports.
    pub(super) fn new<'a>(
        protocol: u16,
        ports: impl ExactSizeIterator<Item = &'a BridgePort> + Clone,
    ) -> Self {
        let count = ports.len();
        let mut vlans = BTreeMap::new();
        for (number, port) in ports.clone().enumerate() {
            let tagged = port.tagged.iter().map(|&vlan| (vlan, false));
            for (vlan, untagged) in tagged.chain(port.untagged.iter().map(|&vlan| (vlan, true))) {
                let new = || VlanPorts { members: PortSet::new(count), untagged: PortSet::new(count) };
                let of_vlan = vlans.entry(vlan).or_insert_with(new);
                of_vlan.members.insert(number);
                if untagged {
                    of_vlan.untagged.insert(number);
                }
            }
        }
        Self { protocol, native: ports.map(|port| port.native).collect(), vlans }
    }

    /// Whether the VLANs are a provider's (IEEE 802.1ad), whose bridges are not for the customers' bridges to see.
    #[inline]
    pub(super) const fn is_provider(&self) -> bool {
        self.protocol == vlan::PROVIDER
    }

    /// The class of a frame that has arrived on `port`.
    ///
    /// # Errors
    /// The port takes no such frames.
    #[inline]
    pub(super) fn classify(&self, port: usize, frame: &[u8]) -> Result<Class, Refusal> {
        let native = || self.native.get(port).copied().flatten().ok_or(Refusal::NoNative);
        match vlan::tag(frame).filter(|tag| tag.kind == self.protocol) {
            None => Ok(Class { vlan: native()?, form: Form::Untagged }),
            Some(Tag { id: 0, .. }) => Ok(Class { vlan: native()?, form: Form::Priority }),
            Some(Tag { id, .. }) => match self.ports(id) {
                Some(ports) if ports.members.contains(port) => Ok(Class { vlan: id, form: Form::Tagged }),
                _ => Err(Refusal::NotAllowed),
            },
        }
    }

    /// The ports of a VLAN, if it has any.
    #[inline]
    pub(super) fn ports(&self, vlan: u16) -> Option<&VlanPorts> {
        self.vlans.get(&vlan)
    }

    /// The VLANs that have ports, in order.
    pub(super) fn vlans(&self) -> impl Iterator<Item = u16> {
        self.vlans.keys().copied()
    }

    /// Brings a frame into the form in which `port`, a member of its VLAN, is given it. The priority in a tag stays as
    /// it is where the tag stays.
    #[inline]
    pub(super) fn fit(&self, port: usize, class: Class, frame: &mut Buffer) {
        let untagged = self.ports(class.vlan).is_some_and(|ports| ports.untagged.contains(port));
        match (untagged, class.form) {
            (true, Form::Untagged) | (false, Form::Tagged) => {}
            (true, Form::Priority | Form::Tagged) => vlan::pop(frame),
            (false, Form::Untagged) => vlan::push(frame, Tag { kind: self.protocol, id: class.vlan }),
            (false, Form::Priority) => vlan::set_id(frame, class.vlan),
        }
    }
}
