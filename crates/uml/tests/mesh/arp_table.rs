//! The distributed ARP table of nodes of both.

use hopcast_core::Buffer;
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::ethernet::{self, BROADCAST, Header};

use crate::both::row;
use crate::host::address;
use crate::live::Live;

impl Live {
    fn station(&self, node: usize) -> Station {
        Station { mac: self.topology.host(node), address: address(0, node as u8 + 1) }
    }

    /// Has the host of a node of ours ask for the address of another's, until it is answered.
    fn resolves(&mut self, from: usize, to: usize) {
        let (sender, owner) = (self.station(from), self.station(to));
        let target = Station { mac: [0; 6], ..owner };
        let mut frame = Buffer::copy_from(&[]);
        arp::prepend(&mut frame, &Packet { operation: Operation::Request, sender, target });
        let header = Header { destination: BROADCAST, source: sender.mac, ether_type: arp::ETHER_TYPE };
        ethernet::prepend(&mut frame, header);
        self.ours.nodes.get_mut(&from).unwrap().host.received.clear();
        self.ours.send(from, frame, &self.guest);
        self.until(&format!("{from} has the address of {to}"), |live| {
            let received = &live.ours.nodes[&from].host.received;
            let packets = received.iter().filter_map(|frame| arp::parse(frame.get(ethernet::HEADER..)?).ok());
            let mut replies = packets.filter(|packet| packet.operation == Operation::Reply);
            replies.any(|reply| reply.sender == owner).then_some(()).ok_or(format!("{received:x?}"))
        });
    }
}

#[test]
fn nodes_of_both_keep_entries_for_each_other() {
    let Some(mut live) = row(|_, _| ()) else { return };
    for node in live.kernels() {
        live.at(node, "batctl meshif bat0 dat 1");
    }
    // Every node has heard by then that the others take part.
    live.ping_from(4, 100, 1, 56);
    live.sh("sleep 3");
    live.ping_from(1, 0, 4, 56);
    // Three of the four others keep each address in the answer, so that one of ours does; theirs answer ours, and no
    // request is flooded.
    for to in [1, 4] {
        let owner = live.station(to);
        live.until("an entry", |live| {
            let entries: Vec<_> = live.ours.nodes.values().flat_map(|node| node.mesh.arp_table()).collect();
            let found = entries.iter().any(|entry| (entry.address, entry.mac) == (owner.address, owner.mac));
            found.then_some(()).ok_or(format!("{entries:x?}"))
        });
        [0, 2].into_iter().for_each(|from| live.resolves(from, to));
    }
    for from in [0, 2] {
        assert_eq!(live.ours.nodes[&from].counter("broadcasts_sent"), 0, "{from}");
    }
}
