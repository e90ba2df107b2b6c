//! What the node does for its host: services for what that forwards or between its interfaces, and senders to groups of
//! hosts.

use std::collections::BTreeSet;

use hopcast_core::plug::{DevicePlug, FramesPlug, HookPlug, Plug};
use hopcast_core::{Instant, Port, Slot, Stream};
use hopcast_stack::service::StatusReader;
use hopcast_stack::site::{HookChain, SiteGroup, SiteInterface, SiteMachine, SiteSender};

use super::interfaces::Interfaces;
use super::report;
use super::site::Site;
use super::stack::Stack;
use crate::config::{Config, HostDevice, HostSender, HostService};
use crate::status::{HostStatus, TableStatus};

/// A service or sender in the status.
pub(crate) struct HostPart {
    /// The service's name, that of its device, or the group's address.
    name: String,
    over: String,
    /// Whether it has a device of the host's.
    has_tap: bool,
    slot: Slot,
    /// How a sender serves its members now.
    shown: Option<Box<dyn Fn() -> String>>,
    /// Reads the service's tables.
    reader: Option<StatusReader>,
}

/// A machine that takes packets out of the host.
struct Hooked<'a> {
    interfaces: &'a [String],
    end: (Slot, Port),
    is_service: bool,
}

impl Stack {
    /// The services and senders of the node of `config`.
    pub(super) fn host(&mut self, config: &Config, interfaces: &Interfaces, random: &mut Stream) {
        // Machines with the same selection share a plug: the kernel gives a packet to one.
        let mut hooked = Vec::new();
        for service in &config.services {
            if let Some(device) = &service.device {
                self.between(service, device, (interfaces, random.fork()));
                continue;
            }
            let slot = self.machines.add(service.service.machine(&service.addresses, random.fork()));
            let end = (slot, Port::Below(0));
            let hook = Hooked { interfaces: &service.interfaces, end, is_service: true };
            hooked.push((service.service.hooks(), hook));
            let (name, over) = (service.service.name().to_owned(), service.service.to_string());
            let part = HostPart { name, over, has_tap: false, slot, shown: None, reader: None };
            self.host_parts.push(part);
        }
        for sender in &config.senders {
            let HostSender { to, from, members, interfaces, over, .. } = sender;
            let group = SiteGroup { own: *from, to: *to, members };
            let SiteSender { machine, hooks, shown } = over.delivery().sender(&group, random.fork());
            let slot = self.machines.add(machine);
            let end = (slot, Port::Below(1));
            hooked.push((hooks, Hooked { interfaces, end, is_service: false }));
            let length = if to.is_ipv4() { 32 } else { 128 };
            let device = DevicePlug {
                name: sender.tun.clone(),
                addresses: sender.addresses.clone(),
                routes: vec![(*to, length)],
                mtu: u32::from(config.mtu) - over.overhead() as u32,
                reports_memberships: false,
            };
            self.plug((slot, Port::Above(0)), Plug::Tun(device));
            let (name, over, shown) = (to.to_string(), over.to_string(), Some(shown));
            let part = HostPart { name, over, has_tap: false, slot, shown, reader: None };
            self.host_parts.push(part);
        }
        while let Some((hooks, _)) = hooked.first() {
            let hooks = hooks.clone();
            let (same, others): (Vec<_>, _) = hooked.into_iter().partition(|(other, _)| *other == hooks);
            hooked = others;
            let mut chain = HookChain::default();
            let ports: Vec<Port> = same.iter().map(|(_, hooked)| chain.add(hooked.is_service)).collect();
            let slot = self.machines.add(Box::new(chain));
            for ((_, hooked), port) in same.iter().zip(ports) {
                self.machines.wire((slot, port), hooked.end);
            }
            let interfaces: BTreeSet<&String> = same.iter().flat_map(|(_, it)| it.interfaces).collect();
            let interfaces = interfaces.into_iter().cloned().collect();
            self.plug((slot, Port::Below(0)), Plug::Hook(HookPlug { hooks, interfaces }));
        }
    }
}

impl Stack {
    /// A service between interfaces, with its TAP device. The host gives up the interfaces, or only the frames of the
    /// service's EtherType.
    fn between(
        &mut self,
        service: &HostService,
        device: &HostDevice,
        (known, random): (&Interfaces, Stream),
    ) {
        let HostService { interfaces: names, service, .. } = service;
        let HostDevice { tap, addresses, mac } = device;
        let fact = |name: &String| match known.get(name) {
            Some(interface) => interface.clone(),
            None => SiteInterface::unknown(name, *mac),
        };
        let interfaces: Vec<_> = names.iter().map(fact).collect();
        // The configuration was refused otherwise.
        let Ok(between) = service.between((tap, *mac), &interfaces, random) else { return };
        let SiteMachine { machine, reader, mtu, reports_memberships } = between;
        let slot = self.machines.add(machine);
        for (port, interface) in (0..).zip(names.iter().cloned()) {
            let plug = match service.ether_type() {
                Some(ether_type) => Plug::Frames(FramesPlug { interface, ether_type, promiscuous: false }),
                None => Plug::Interface(interface),
            };
            self.plug((slot, Port::Below(port)), plug);
        }
        let device = DevicePlug {
            name: tap.clone(),
            addresses: addresses.clone(),
            routes: Vec::new(),
            mtu,
            reports_memberships,
        };
        self.plug((slot, Port::Above(0)), Plug::Tap(*mac, device));
        let (name, over) = (tap.clone(), service.to_string());
        self.host_parts.push(HostPart { name, over, has_tap: true, slot, shown: None, reader });
    }
}

impl HostPart {
    /// Whether it has tables.
    pub(super) const fn has_tables(&self) -> bool {
        self.reader.is_some()
    }

    /// Its status, with its tables if they are asked for: reading them takes time from the data.
    pub(super) fn status(&self, now: Instant, site: &Site, with_tables: bool) -> HostStatus {
        let reader = self.reader.as_ref().filter(|_| with_tables);
        let tables = reader.map_or_else(Vec::new, |read| read());
        HostStatus {
            name: self.name.clone(),
            role: if self.shown.is_some() { "sender" } else { "service" }.to_owned(),
            over: self.over.clone(),
            tap: self.has_tap.then(|| self.name.clone()),
            shown: self.shown.as_ref().map(|shown| shown()).unwrap_or_default(),
            tables: tables
                .iter()
                .filter(|table| !table.rows.is_empty())
                .map(|table| TableStatus::of(table, now))
                .collect(),
            counters: report::counters(site, &[self.slot]),
        }
    }
}
