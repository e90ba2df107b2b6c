use proptest::prelude::*;

use super::net::Net;
use super::*;
use crate::testing::{receiver_address, trees};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn each_receiver_has_one_copy_whatever_the_tree_and_whoever_takes_part(
        tree in trees(),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 1..30),
        is_anonymous: bool,
    ) {
        let places: Vec<usize> = places.iter().map(|place| place.index(tree.len())).collect();
        let receivers: Vec<Ipv6Addr> = (0..places.len()).map(receiver_address).collect();
        let mut net = Net::new(&tree, &places);
        net.send(packet(&receivers, |packet| Packet { is_anonymous, ..packet }));
        prop_assert_eq!(net.received.len(), receivers.len());
        for (receiver, got) in &net.received {
            prop_assert_eq!(got.len(), 1);
            prop_assert_eq!(plain(&got[0]), (*receiver, 5001));
        }
        if tree.iter().all(|(_, speaks)| *speaks) {
            prop_assert!(net.crossed.values().all(|count| *count == 1), "one copy on each link: {:?}", net.crossed);
        }
        prop_assert!(net.crossed.values().all(|count| *count <= receivers.len()));
    }
}
