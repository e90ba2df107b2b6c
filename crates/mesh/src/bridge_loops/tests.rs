use hopcast_core::Seed;
use hopcast_wire::ethernet::{BROADCAST, Mac};

use super::wire::ClaimFrame;
use super::*;

const OWN: Mac = [2, 0, 0, 0, 0, 1];
const OTHER: Mac = [2, 0, 0, 0, 0, 2];
const AT_ALL: Key = Key { vlan: 0, address: BROADCAST };

/// A node that waits no more.
fn node() -> BridgeLoops {
    let mut node = BridgeLoops::new(true, OWN, Seed::new(1, 0).stream(&["node"], 0));
    node.start();
    (0..3).for_each(|_| node.pass_period(Instant::ZERO));
    sent(&mut node);
    node
}

fn client(number: u16) -> Key {
    let [high, low] = number.to_be_bytes();
    Key { vlan: 0, address: [6, 0, 0, 0, high, low] }
}

/// Number of frames that the node has sent.
fn sent(node: &mut BridgeLoops) -> usize {
    std::iter::from_fn(|| node.next_frame()).count()
}

/// Gives a message of another node on the LAN to it. Only `OTHER` is in the mesh.
fn tell(node: &mut BridgeLoops, message: Message) {
    let frame = ClaimFrame { group: node.group, vlan: 0, message }.bytes();
    let source = Key { vlan: 0, address: message.node() };
    node.take_from_lan(Instant::ZERO, &frame, (source, AT_ALL), |node| node == OTHER);
}

fn takes_broadcast(node: &mut BridgeLoops, source: Key) -> bool {
    node.take_from_mesh(Instant::ZERO, Encapsulation::Broadcast, (source, AT_ALL), || 0)
}

#[test]
fn a_broadcast_whose_sender_cannot_be_claimed_is_left_to_others() {
    let mut node = node();
    let taken = (0..5000).filter(|&number| takes_broadcast(&mut node, client(number))).count();
    assert_eq!((taken, sent(&mut node)), (4096, 4096));
    assert!(takes_broadcast(&mut node, client(0)));
    let to_one = (client(4999), Key { vlan: 0, address: OTHER });
    assert!(node.take_from_mesh(Instant::ZERO, Encapsulation::Unicast, to_one, || 0));
}

#[test]
fn a_node_whose_claims_find_no_room_is_not_asked_again_until_there_is_room() {
    let mut node = node();
    let claims = |node: &mut BridgeLoops, to| {
        for number in 0..to {
            tell(node, Message::Claim { node: OTHER, client: client(number).address });
        }
    };
    let announcement = Message::Announce { node: OTHER, checksum: 1 };
    claims(&mut node, 5000);
    for _ in 0..3 {
        tell(&mut node, announcement);
        assert_eq!(sent(&mut node), 0);
        assert!(takes_broadcast(&mut node, client(6000)));
        sent(&mut node);
    }
    tell(&mut node, Message::Unclaim { node: OTHER, client: client(0).address });
    tell(&mut node, announcement);
    assert_eq!(sent(&mut node), 1);
    assert!(!takes_broadcast(&mut node, client(6000)), "its claims are not there yet");
    claims(&mut node, 5000);
    tell(&mut node, announcement);
    assert!(takes_broadcast(&mut node, client(6000)));
}

#[test]
fn a_frame_from_a_group_is_neither_taken_nor_claimed() {
    let mut node = node();
    let group = Key { vlan: 0, address: [1, 0, 0x5e, 0, 0, 1] };
    assert!(!takes_broadcast(&mut node, group));
    let to_one = (group, client(1));
    assert!(!node.take_from_mesh(Instant::ZERO, Encapsulation::Unicast, to_one, || 0));
    assert_eq!((node.claims().count(), sent(&mut node), node.counters.frames_from_groups), (0, 0, 2));
}

#[test]
fn a_node_of_the_mesh_takes_the_place_of_a_forged_one() {
    let mut node = node();
    for number in 0..300_u16 {
        let [high, low] = number.to_be_bytes();
        tell(&mut node, Message::Announce { node: [2, 9, 0, 0, high, low], checksum: 1 });
    }
    assert_eq!((node.backbones.len(), node.backbones.refused), (256, 44));
    assert!(!takes_broadcast(&mut node, client(1)), "those were asked");
    node.take_changes();
    tell(&mut node, Message::Announce { node: OTHER, checksum: 0 });
    let first = [2, 9, 0, 0, 0, 0];
    assert_eq!(node.take_changes(), [BackboneChange::Removed(first, 0), BackboneChange::Appeared(OTHER, 0)]);
    assert!(node.is_backbone(OTHER, 0) && node.backbones.len() == 256);
    let later = Instant::ZERO + Duration::from_secs(61);
    node.pass_period(later);
    assert_eq!(node.backbones.len(), 0);
    assert!(takes_broadcast(&mut node, client(1)));
}
