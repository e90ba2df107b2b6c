//! The groups of a node: their machines, their disks, and what is to be said of them.

use std::io;

use hopcast_core::plug::Plug;
use hopcast_core::{Instant, Item, Membership, Pacer, Port, Rate, Shared, Stream};
use hopcast_stack::site::{GroupLayer, GroupMember};
use log::log;

use super::site::Site;
use super::stack::{Stack, headers};
use super::switchboard::Lane;
use crate::config::{Config, Group};
use crate::group::disk::{Disk, Places};
use crate::group::wire::{MAX_PIECE, number};
use crate::group::{LocalMember, MemberConfig};
use crate::hello::peer::{identity, identity_of_group};
use crate::hello::wire::Tag;
use crate::status::GroupStatus;

/// Part of a group's rate that is for messages where there are files too, as one over a number. Chosen; a smaller part
/// delays messages, a larger one files.
const MESSAGES: u64 = 4;
/// Part of a group's memory that is for messages, likewise.
const MESSAGE_MEMORY: u64 = 8;
/// Length of a lane's tag and of the kind behind it, in bytes.
const TAG_AND_KIND: u16 = 2;

/// A group that the node is in.
pub(crate) struct GroupPart {
    pub(crate) member: Shared<LocalMember>,
    /// The members, by their places among the peers.
    peers: Vec<usize>,
    channel: u8,
    over: String,
    places: Places,
}

impl Stack {
    pub(super) fn group(&mut self, config: &Config, group: &Group, datagram: u16, random: &mut Stream) {
        let tag = Tag::group(group.channel);
        let names: Vec<String> = group.members.iter().map(|&peer| config.peers[peer].name.clone()).collect();
        let addresses: Vec<_> = group.members.iter().map(|&peer| identity(Some(peer), tag)).collect();
        let (has_files, has_messages) =
            (group.send.is_some() || group.receive.is_some(), group.messages.is_some());
        let copies = if group.address.is_some() { 1 } else { names.len() as u64 };
        let of_group = |share: u64, memory: u64, message: u64, random: Stream| GroupMember {
            // Behind the tag comes the kind.
            datagram: datagram - 1,
            overhead: headers(config) + TAG_AND_KIND,
            slack: Pacer::KERNEL_SLACK,
            memory,
            local: identity(None, tag),
            group: identity_of_group(tag),
            number: number(&config.name),
            others: names.iter().map(|name| number(name)).zip(addresses.iter().copied()).collect(),
            message,
            rate: group
                .rate
                .map(|rate| Rate::from_bits_per_sec((rate.bits_per_sec() / share / copies).max(1))),
            random,
        };
        // Two directions of batches, which a group has none of.
        let memory = 2 * self.memory.batches;
        let parts = |over: &GroupLayer, member| over.transport().member(member);
        // All rates but one in `MESSAGES` are for files.
        let mut files = of_group(1, memory, MAX_PIECE, random.fork());
        if has_messages {
            files.rate = files.rate.map(|rate| {
                let messages = if has_files { rate.bits_per_sec() / MESSAGES } else { 0 };
                Rate::from_bits_per_sec((rate.bits_per_sec() - messages).max(1))
            });
        }
        let share = if has_files { MESSAGES } else { 1 };
        let messages = of_group(share, memory / MESSAGE_MEMORY, MAX_PIECE, random.fork());
        let messages = has_messages.then(|| parts(&group.over, messages));
        let member = LocalMember::new(
            MemberConfig {
                name: group.name.clone(),
                local: identity(None, tag),
                group: identity_of_group(tag),
                members: names.iter().cloned().zip(addresses).collect(),
                is_multicast: group.address.is_some(),
                receives: group.receive.is_some(),
                quota: group.receive.as_ref().map_or(0, |receive| receive.quota),
                datagram,
                instance: (random.bits() as u32).max(1),
            },
            parts(&group.over, files),
            messages,
        );
        let member = Shared::new(member);
        let multicast = group.address.map(|address| (address, config.listen.port()).into());
        let lane = Lane { tag, peers: group.members.clone(), relay: false, multicast };
        let slot = self.lane(lane, Box::new(member.clone()));
        if let Some(path) = &group.messages {
            self.plug((slot, Port::Above(0)), Plug::Local(path.clone()));
        }
        let places = Places {
            send: group.send.clone(),
            receive: group.receive.as_ref().map(|receive| receive.directory.clone()),
            members: names,
        };
        let (peers, over) = (group.members.clone(), group.over.to_string());
        self.groups.push(GroupPart { member, peers, channel: group.channel, over, places });
    }
}

impl GroupPart {
    /// Starts its disk's thread, if it has files.
    pub(super) fn start(&self) -> io::Result<()> {
        if self.places.send.is_some() || self.places.receive.is_some() {
            self.member.get_mut().connect(Disk::start(self.places.clone())?);
        }
        Ok(())
    }

    /// Hands over the list of members that are up, and logs events.
    pub(super) fn look_after(&self, now: Instant, site: &Site) {
        let up: Vec<bool> = self.peers.iter().map(|&peer| site.switchboard.peers[peer].is_up()).collect();
        let mut member = self.member.get_mut();
        member.note_up(now, &up);
        while let Some((level, line)) = member.line() {
            log!(level, "{line}");
        }
    }

    pub(super) fn status(&self, now: Instant) -> GroupStatus {
        let (channel, over) = (self.channel, self.over.clone());
        GroupStatus { channel, over, ..self.member.get().status(now) }
    }
}

/// The memberships of the node's port in groups of the network.
pub(super) fn memberships(config: &Config) -> Vec<Item> {
    let groups = config.groups.iter().filter_map(|group| group.address);
    let joined = groups.map(|group| Membership { group, source: None, interface: None, joined: true });
    joined.map(Item::Membership).collect()
}
