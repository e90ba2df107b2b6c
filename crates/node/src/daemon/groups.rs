//! The groups of a node: their machines, their disks, and what is to be said of them.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use hopcast_core::plug::Plug;
use hopcast_core::{Instant, Item, Machine, Membership, Pacer, Port, Rate, Shared, Stream};
use hopcast_stack::site::{GroupMember, GroupService, GroupTransport, StoreAndForward, StoringMember};
use log::{log, warn};

use super::site::Site;
use super::stack::{Stack, headers};
use super::switchboard::Lane;
use crate::config::{Config, Group};
use crate::group::disk::{Disk, Places};
use crate::group::wire::{MAX_PIECE, number};
use crate::group::{LocalMember, MemberConfig, Other, StoreForward, StoringConfig};
use crate::hello::peer::{identity, identity_of_group};
use crate::hello::wire::Tag;
use crate::status::GroupStatus;
use crate::store::{Store, wall_clock};

/// Part of a group's rate that is for messages where there are files too, as one over a number. Chosen; a smaller part
/// delays messages, a larger one files.
const MESSAGES: u64 = 4;
/// Part of a group's memory that is for messages, likewise.
const MESSAGE_MEMORY: u64 = 8;
/// Length of a lane's tag and of the kind behind it, in bytes.
const TAG_AND_KIND: u16 = 2;

/// A group that the node is in.
pub(crate) struct GroupPart {
    member: Member,
    /// The members, by their places among the peers.
    peers: Vec<usize>,
    channel: u8,
    over: String,
    places: Places,
}

/// The node as a member.
enum Member {
    /// Of those that offer each other what they have.
    Offering(Shared<LocalMember>),
    /// Of those that hold messages for each other, with the directory of its store and the bytes of that at most.
    Storing(Shared<StoreForward>, PathBuf, u64),
}

impl Stack {
    pub(super) fn group(&mut self, config: &Config, group: &Group, datagram: u16, random: &mut Stream) {
        let plan = Plan { config, group, datagram, memory: 2 * self.memory.batches };
        let (member, machine): (_, Box<dyn Machine>) = match group.over.transport() {
            GroupService::Direct(transport) => {
                let member = Shared::new(plan.offering(transport, random));
                (Member::Offering(member.clone()), Box::new(member))
            }
            GroupService::StoreAndForward(transport) => {
                let (member, room) = plan.storing(transport, random);
                let member = Shared::new(member);
                let store = config.state.join(&group.name);
                (Member::Storing(member.clone(), store, room), Box::new(member))
            }
        };
        let multicast = group.address.map(|address| (address, config.listen.port()).into());
        let lane = Lane { tag: plan.tag(), peers: group.members.clone(), relay: false, multicast };
        let slot = self.lane(lane, machine);
        if let Some(path) = &group.messages {
            self.plug((slot, Port::Above(0)), Plug::Local(path.clone()));
        }
        let places = Places {
            send: group.send.clone(),
            receive: group.receive.as_ref().map(|receive| receive.directory.clone()),
            members: plan.names(),
        };
        let (peers, over) = (group.members.clone(), group.over.to_string());
        self.groups.push(GroupPart { member, peers, channel: group.channel, over, places });
    }
}

/// The settings that the machines of a group follow from.
struct Plan<'a> {
    config: &'a Config,
    group: &'a Group,
    datagram: u16,
    /// The group's memory: two directions of batches, which it has none of.
    memory: u64,
}

impl Plan<'_> {
    const fn tag(&self) -> Tag {
        Tag::group(self.group.channel)
    }

    /// Names of the others, the peers first.
    fn names(&self) -> Vec<String> {
        let peers = self.group.members.iter().map(|&peer| self.config.peers[peer].name.clone());
        peers.chain(self.group.afar.iter().cloned()).collect()
    }

    /// Addresses of the others that are peers.
    fn addresses(&self) -> Vec<SocketAddr> {
        self.group.members.iter().map(|&peer| identity(Some(peer), self.tag())).collect()
    }

    /// A member of the transport with a share of the rate and of the memory, for files or for messages of programs.
    fn member(&self, is_messages: bool, message: u64, random: Stream) -> GroupMember {
        let Group { address, .. } = self.group;
        let copies = if address.is_some() { 1 } else { self.group.members.len() as u64 };
        let addresses = self.addresses();
        GroupMember {
            // Behind the tag comes the kind.
            datagram: self.datagram - 1,
            overhead: headers(self.config) + TAG_AND_KIND,
            slack: Pacer::KERNEL_SLACK,
            memory: if is_messages { self.memory / MESSAGE_MEMORY } else { self.memory },
            local: identity(None, self.tag()),
            group: identity_of_group(self.tag()),
            number: number(&self.config.name),
            others: self.names().iter().map(|name| number(name)).zip(addresses).collect(),
            message,
            rate: self
                .rate(is_messages)
                .map(|rate| Rate::from_bits_per_sec((rate.bits_per_sec() / copies).max(1))),
            random,
        }
    }

    /// The rate of files or of messages of programs, all copies together.
    fn rate(&self, is_messages: bool) -> Option<Rate> {
        let Group { send, receive, messages, rate, .. } = self.group;
        let (has_files, has_messages) = (send.is_some() || receive.is_some(), messages.is_some());
        // Where the members hold messages for each other, there are both at any of them.
        let has_both = has_files && has_messages || self.group.over.stores_and_forwards();
        let rate = rate.as_ref()?.bits_per_sec();
        Some(Rate::from_bits_per_sec(match (is_messages, has_both) {
            (true, true) => rate / MESSAGES,
            (false, true) => rate - rate / MESSAGES,
            (_, false) => rate,
        }))
    }

    fn offering(&self, transport: &dyn GroupTransport, random: &mut Stream) -> LocalMember {
        let files = transport.member(self.member(false, MAX_PIECE, random.fork()));
        let messages = self.member(true, MAX_PIECE, random.fork());
        let messages = self.group.messages.is_some().then(|| transport.member(messages));
        let config = MemberConfig {
            name: self.group.name.clone(),
            local: identity(None, self.tag()),
            group: identity_of_group(self.tag()),
            members: self.names().into_iter().zip(self.addresses()).collect(),
            is_multicast: self.group.address.is_some(),
            receives: self.group.receive.is_some(),
            quota: self.group.receive.as_ref().map_or(0, |receive| receive.quota),
            datagram: self.datagram,
            instance: (random.bits() as u32).max(1),
        };
        LocalMember::new(config, files, messages)
    }

    /// A member that holds messages for others, and the bytes that it holds at most.
    fn storing(&self, transport: &dyn StoreAndForward, random: &mut Stream) -> (StoreForward, u64) {
        let holder = |is_messages: bool, random: Stream| {
            let subscribes =
                if is_messages { self.group.messages.is_some() } else { self.group.receive.is_some() };
            let mut member = self.member(is_messages, u64::MAX, random);
            if !is_messages {
                member.memory -= member.memory / MESSAGE_MEMORY;
            }
            let room = transport.room(member.memory);
            let group = number(&self.group.name);
            let in_order = is_messages;
            (transport.member(StoringMember { member, group, subscribes, in_order, number_of: number }), room)
        };
        let (files, room_of_files) = holder(false, random.fork());
        let (messages, room_of_messages) = holder(true, random.fork());
        let addresses = self.addresses().into_iter().map(Some).chain(std::iter::repeat(None));
        let other =
            |(name, address): (String, Option<SocketAddr>)| Other { number: number(&name), name, address };
        let config = StoringConfig {
            name: self.group.name.clone(),
            number: number(&self.config.name),
            group: identity_of_group(self.tag()),
            members: self.names().into_iter().zip(addresses).map(other).collect(),
            is_multicast: self.group.address.is_some(),
            rates: [self.rate(false), self.rate(true)],
            receives: self.group.receive.is_some(),
            quota: self.group.receive.as_ref().map_or(0, |receive| receive.quota),
            rooms: [room_of_files, room_of_messages],
        };
        // Files that wait to be written take as much again.
        let room = 2 * room_of_files.0 + room_of_messages.0;
        (StoreForward::new(config, files, messages), room)
    }
}

impl GroupPart {
    /// Starts its disk's thread, if it has files, and opens its store, if it has one.
    pub(super) fn start(&self, now: Instant) -> io::Result<()> {
        if let Member::Storing(member, directory, room) = &self.member {
            match Store::open(directory, *room) {
                Ok((store, found)) => member.get_mut().keep(now, wall_clock(), store, found),
                Err(error) => warn!(
                    "{}: {error}: what is held for others is not kept over a restart; `state` names another directory",
                    directory.display()
                ),
            }
        }
        if self.places.send.is_some() || self.places.receive.is_some() {
            let disk = Disk::start(self.places.clone())?;
            match &self.member {
                Member::Offering(member) => member.get_mut().connect(disk),
                Member::Storing(member, ..) => member.get_mut().connect(disk),
            }
        }
        Ok(())
    }

    /// Hands over the list of members that are up, and logs events.
    pub(super) fn look_after(&self, now: Instant, site: &Site) {
        let up: Vec<bool> = self.peers.iter().map(|&peer| site.switchboard.peers[peer].is_up()).collect();
        let next_line = || match &self.member {
            Member::Offering(member) => member.get_mut().line(),
            Member::Storing(member, ..) => member.get_mut().line(),
        };
        match &self.member {
            Member::Offering(member) => member.get_mut().note_up(now, &up),
            Member::Storing(member, ..) => member.get_mut().note_up(&up),
        }
        while let Some((level, line)) = next_line() {
            log!(level, "{line}");
        }
    }

    pub(super) fn status(&self, now: Instant) -> GroupStatus {
        let (channel, over) = (self.channel, self.over.clone());
        let status = match &self.member {
            Member::Offering(member) => member.get().status(now),
            Member::Storing(member, ..) => member.get().status(now),
        };
        GroupStatus { channel, over, ..status }
    }
}

/// The memberships of the node's port in groups of the network.
pub(super) fn memberships(config: &Config) -> Vec<Item> {
    let groups = config.groups.iter().filter_map(|group| group.address);
    let joined = groups.map(|group| Membership { group, source: None, interface: None, joined: true });
    joined.map(Item::Membership).collect()
}
