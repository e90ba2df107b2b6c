//! The distributed ARP table: what nodes know of their clients' IPv4 addresses, so that requests need not be flooded.
//!
//! Nodes that take part have a place on a ring, the hash of their address, and an IPv4 address in a VLAN has one, too.
//! The three nodes behind that place, the nearest first, keep its entry:
//!
//! - A client's answer to a request is sent to the keepers of both addresses in it (`ARP_PUT`).
//! - A client's request is answered from the node's own entries. If it has none, it asks the keepers (`ARP_GET`), who
//!   answer from theirs, and floods the request a quarter of a second later unless it has an entry then.
//! - A request that arrives and could be answered is answered, and not handed up.
//!
//! Every node keeps what it hears besides.
//!
//! # Scope and departures
//!
//! - Answers of DHCP servers are not looked at; the kernel has entries by them, too.
//! - The number of entries has a bound; the kernel's is its memory.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hopcast_core::{Buffer, Duration, Instant};
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::ethernet::{self, Mac};
use hopcast_wire::vlan;

use crate::wire::translation::{TAGGED, vlan_of};
use crate::wire::tvlv;

/// Version of the container.
pub(crate) const VERSION: u8 = 1;
/// Time after which an entry that is not heard again is forgotten (`BATADV_DAT_ENTRY_TIMEOUT`).
const ENTRY_TIMEOUT: Duration = Duration::from_secs(300);
/// Time for which a request waits for an answer before it is flooded (`ARP_REQ_DELAY`).
const REQUEST_DELAY: Duration = Duration::from_millis(250);
/// Number of nodes that keep an entry (`BATADV_DAT_CANDIDATES_NUM`).
const KEEPERS: usize = 3;
/// Number of places on the ring; the highest is never one (`BATADV_DAT_ADDR_MAX`).
const PLACES: u32 = u16::MAX as u32;
/// Maximum number of entries, in some 300 kB. Chosen: a quarter of the clients that a node knows; the addresses of
/// others are flooded for.
const MAX_ENTRIES: usize = 4096;
/// Maximum number of requests that wait; further ones are flooded at once.
const MAX_WAITING: usize = 256;

/// An entry of the distributed ARP table, as `batctl dc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpEntry {
    /// The client's IPv4 address.
    pub address: Ipv4Addr,
    /// The client's Ethernet address.
    pub mac: Mac,
    /// The client's VLAN, as in the [translation table](crate::wire::translation).
    pub vlan: u16,
    /// Time at which it was heard last.
    pub last_heard: Instant,
}

/// An IPv4 address in a VLAN.
pub(crate) type Name = (u16, Ipv4Addr);

/// The state of the table in a node.
#[derive(Debug)]
pub(crate) struct ArpTable {
    enabled: bool,
    /// The nodes that take part, with their places.
    members: BTreeMap<Mac, u16>,
    entries: BTreeMap<Name, (Mac, Instant)>,
    /// The requests that are flooded if there is no answer in time.
    waiting: BTreeMap<(Instant, u64), (Name, Buffer)>,
    ever: u64,
    /// Number of entries for which there was no room.
    pub(crate) refused: u64,
}

impl ArpTable {
    pub(crate) fn new(enabled: bool) -> Self {
        let (members, entries, waiting) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { enabled, members, entries, waiting, ever: 0, refused: 0 }
    }

    pub(crate) const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The packet of ARP in a frame, with its VLAN, if the node takes part and the packet is one that has entries.
    pub(crate) fn read(&self, frame: &[u8]) -> Option<(u16, Packet)> {
        self.enabled.then(|| read(frame)).flatten()
    }

    /// Takes an originator's containers.
    pub(crate) fn hear(&mut self, node: Mac, containers: &[u8]) {
        if tvlv::values(containers, tvlv::ARP_TABLE, VERSION).next().is_some() {
            self.members.entry(node).or_insert_with(|| place(&node));
        } else {
            self.members.remove(&node);
        }
    }

    pub(crate) fn forget(&mut self, node: Mac) {
        self.members.remove(&node);
    }

    /// Notes a station's addresses.
    pub(crate) fn learn(&mut self, now: Instant, vlan: u16, Station { mac, address }: Station) {
        let name = (vlan, address);
        if self.entries.len() < MAX_ENTRIES || self.entries.contains_key(&name) {
            self.entries.insert(name, (mac, now));
        } else {
            self.refused += 1;
        }
    }

    pub(crate) fn find(&self, name: Name) -> Option<Mac> {
        self.entries.get(&name).map(|(mac, _)| *mac)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = ArpEntry> {
        let each = self.entries.iter();
        each.map(|(&(vlan, address), &(mac, last_heard))| ArpEntry { address, mac, vlan, last_heard })
    }

    /// The nodes that keep an entry, the nearest first (`batadv_dat_select_candidates`).
    pub(crate) fn keepers(&self, (vlan, address): Name) -> Vec<Mac> {
        let [a, b, c, d] = address.octets();
        let [high, low] = vlan.to_be_bytes();
        let key = place(&[a, b, c, d, high, low]);
        let mut nodes: Vec<(u16, Mac)> =
            self.members.iter().map(|(&node, &place)| (place.wrapping_sub(key), node)).collect();
        nodes.sort_unstable();
        nodes.into_iter().take(KEEPERS).map(|(_, node)| node).collect()
    }

    /// Has a request wait for its answer. Gives it back if too many wait.
    pub(crate) fn wait(&mut self, now: Instant, name: Name, request: Buffer) -> Option<Buffer> {
        if self.waiting.len() >= MAX_WAITING {
            return Some(request);
        }
        self.waiting.insert((now + REQUEST_DELAY, self.ever), (name, request));
        self.ever += 1;
        None
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(&(at, _), _)| at)
    }

    /// The first request that has waited long enough, and whether its answer is known.
    pub(crate) fn due(&mut self, now: Instant) -> Option<(bool, Buffer)> {
        let entry = self.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let (name, request) = entry.remove();
        Some((self.entries.contains_key(&name), request))
    }

    /// Forgets what has not been heard for long.
    pub(crate) fn purge(&mut self, now: Instant) {
        self.entries.retain(|_, (_, heard)| *heard + ENTRY_TIMEOUT > now);
    }
}

/// Place on the ring of a node, by its address, or of an entry, by its IPv4 address and VLAN: Jenkins's one-at-a-time
/// hash (`batadv_choose_orig`, `batadv_hash_dat`).
fn place(key: &[u8; 6]) -> u16 {
    let mut hash = key.iter().fold(0_u32, |hash, byte| {
        let hash = hash.wrapping_add(u32::from(*byte));
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    });
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash = hash.wrapping_add(hash << 15);
    (hash % PLACES) as u16
}

/// The packet of ARP in a frame, with its VLAN, if stations may have its addresses (`batadv_arp_get_type`).
fn read(frame: &[u8]) -> Option<(u16, Packet)> {
    let tag = vlan::tag(frame).filter(|tag| tag.kind == vlan::CUSTOMER);
    let at = ethernet::HEADER + if tag.is_some() { vlan::TAG } else { 0 };
    let (head, payload) = frame.split_at_checked(at)?;
    if u16::from_be_bytes(*head.last_chunk()?) != arp::ETHER_TYPE {
        return None;
    }
    let packet = arp::parse(payload).ok()?;
    let may_have = |address: Ipv4Addr| {
        !(address.is_loopback()
            || address.is_multicast()
            || address.is_unspecified()
            || address.is_broadcast())
    };
    let is_station = |mac: Mac| mac != [0; 6] && !ethernet::is_group(mac);
    let fits = may_have(packet.sender.address)
        && may_have(packet.target.address)
        && is_station(packet.sender.mac)
        && (packet.operation == Operation::Request || is_station(packet.target.mac));
    fits.then_some((vlan_of(tag), packet))
}

/// The frame that answers a request in the name of a station.
pub(crate) fn answer(vlan: u16, request: &Packet, mac: Mac) -> Buffer {
    let mut frame = Buffer::copy_from(&[]);
    let sender = Station { mac, address: request.target.address };
    arp::prepend(&mut frame, &Packet { operation: Operation::Reply, sender, target: request.sender });
    let header =
        ethernet::Header { destination: request.sender.mac, source: mac, ether_type: arp::ETHER_TYPE };
    ethernet::prepend(&mut frame, header);
    if vlan != 0 {
        vlan::push(&mut frame, vlan::Tag { kind: vlan::CUSTOMER, id: vlan & !TAGGED });
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Station = Station { mac: [6, 0, 0, 0, 0, 1], address: Ipv4Addr::new(10, 0, 0, 1) };
    const B: Station = Station { mac: [6, 0, 0, 0, 0, 2], address: Ipv4Addr::new(10, 0, 0, 2) };

    fn request() -> Packet {
        Packet { operation: Operation::Request, sender: A, target: Station { mac: [0; 6], ..B } }
    }

    fn frame(packet: &Packet) -> Vec<u8> {
        let mut frame = Buffer::copy_from(&[]);
        arp::prepend(&mut frame, packet);
        let header = ethernet::Header { destination: [0xff; 6], source: A.mac, ether_type: arp::ETHER_TYPE };
        ethernet::prepend(&mut frame, header);
        frame.to_vec()
    }

    fn member(table: &mut ArpTable, node: Mac) {
        let mut containers = Vec::new();
        tvlv::put(&mut containers, tvlv::ARP_TABLE, VERSION, &[]);
        table.hear(node, &containers);
    }

    #[test]
    fn places_are_those_of_the_kernels_hash() {
        // Computed by another implementation of the hash.
        let places = [place(&[0; 6]), place(&[2, 0, 0, 0, 0, 1]), place(&[10, 0, 0, 2, 0x80, 7])];
        assert_eq!(places, [0, 9574, 6407]);
    }

    #[test]
    fn the_three_nodes_behind_the_place_of_an_address_keep_it() {
        let mut table = ArpTable::new(true);
        let nodes: Vec<Mac> = (1..=20).map(|last| [2, 0, 0, 0, 0, last]).collect();
        nodes.iter().for_each(|node| member(&mut table, *node));
        let mut firsts = std::collections::BTreeSet::new();
        for last in 0..50 {
            let name = (0, Ipv4Addr::new(10, 0, 0, last));
            let key = place(&[10, 0, 0, last, 0, 0]);
            // The kernel takes those of the greatest 65535 - place + key, in 16 bits.
            let mut expected = nodes.clone();
            expected.sort_by_key(|node| std::cmp::Reverse((0xffff - place(node)).wrapping_add(key)));
            assert_eq!(table.keepers(name), expected[..3]);
            firsts.insert(expected[0]);
        }
        assert!(firsts.len() > 5, "{firsts:?}");
        table.forget(nodes[0]);
        table.hear(nodes[1], &[]);
        assert!((0..50).all(|last| {
            let keepers = table.keepers((0, Ipv4Addr::new(10, 0, 0, last)));
            !keepers.contains(&nodes[0]) && !keepers.contains(&nodes[1])
        }));
    }

    #[test]
    fn only_packets_of_addresses_that_stations_have_are_read() {
        let whole = frame(&request());
        assert_eq!(read(&whole), Some((0, request())));
        assert_eq!(ArpTable::new(false).read(&whole), None);
        let mut tagged = whole.clone();
        tagged.splice(12..12, [0x81, 0, 0, 7]);
        assert_eq!(read(&tagged), Some((7 | TAGGED, request())));
        (0..whole.len()).for_each(|len| assert_eq!(read(&whole[..len]), None, "{len}"));
        for address in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255, 255, 255, 255]] {
            let station = |station: Station| Station { address: address.into(), ..station };
            assert_eq!(read(&frame(&Packet { sender: station(A), ..request() })), None, "{address:?}");
            assert_eq!(read(&frame(&Packet { target: station(B), ..request() })), None, "{address:?}");
        }
        for mac in [[0; 6], [1, 0, 0, 0, 0, 1]] {
            let reply = Packet { operation: Operation::Reply, target: B, ..request() };
            let nobody = |station: Station| Station { mac, ..station };
            assert!(read(&frame(&reply)).is_some());
            assert_eq!(read(&frame(&Packet { sender: nobody(A), ..reply })), None);
            assert_eq!(read(&frame(&Packet { target: nobody(B), ..reply })), None);
        }
    }

    #[test]
    fn an_answer_bears_the_stations_own_address() {
        let found = answer(7 | TAGGED, &request(), B.mac);
        assert_eq!(
            (&found[..6], &found[6..12], &found[12..18]),
            (&A.mac[..], &B.mac[..], &[0x81, 0, 0, 7, 8, 6][..])
        );
        let (vlan, packet) = read(&found).unwrap();
        assert_eq!(
            (vlan, packet),
            (7 | TAGGED, Packet { operation: Operation::Reply, sender: B, target: A })
        );
    }

    #[test]
    fn entries_and_waiting_requests_are_bounded_and_end() {
        let mut table = ArpTable::new(true);
        for number in 0..5000_u32 {
            let station = Station { address: (0x0a00_0000 + number).into(), ..A };
            table.learn(Instant::ZERO + Duration::from_secs(1), 0, station);
        }
        assert_eq!((table.entries().count(), table.refused), (MAX_ENTRIES, 5000 - MAX_ENTRIES as u64));
        let later = Instant::ZERO + Duration::from_secs(200);
        table.learn(later, 0, A);
        table.purge(Instant::ZERO + Duration::from_secs(301));
        let entry = ArpEntry { address: A.address, mac: A.mac, vlan: 0, last_heard: later };
        assert_eq!(table.entries().collect::<Vec<_>>(), [entry]);
        let wait = |table: &mut ArpTable, name| table.wait(later, name, Buffer::copy_from(b"request"));
        assert!((0..MAX_WAITING).all(|_| wait(&mut table, (0, A.address)).is_none()));
        assert!(wait(&mut table, (0, A.address)).is_some());
        let due = later + REQUEST_DELAY;
        assert_eq!((table.deadline(), table.due(later)), (Some(due), None));
        assert!(matches!(table.due(due), Some((true, request)) if request[..] == *b"request"));
        assert!(wait(&mut table, (0, B.address)).is_none());
        let answered = std::iter::from_fn(|| table.due(due)).map(|(known, _)| known).collect::<Vec<_>>();
        assert_eq!((answered.len(), answered.last()), (MAX_WAITING, Some(&false)));
    }
}
