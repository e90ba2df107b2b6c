//! Many members on one segment.

use hopcast_core::Duration;

use super::*;
use crate::testing::contents;

#[test]
fn two_hundred_members_say_no_more_together_than_a_few() {
    let policy = policy();
    let mut bytes = Vec::new();
    for members in [20, 200] {
        let mut net = network(1, 10, members - 11, &policy, 0.01);
        for second in 1..=120_u64 {
            let publisher = (second as usize * 7) % members;
            publish(&mut net, publisher, &contents(1000, second));
            net.run(Duration::from_secs(second), |_| false);
        }
        net.run(Duration::from_secs(150), |net| (1..=10).all(|member| net.members[member].up.len() >= 110));
        for member in 1..=10 {
            let found = received(&net, member).len();
            let own = (1..=120).filter(|second| (second * 7) % members == member).count();
            assert_eq!(found, 120 - own, "member {member} of {members}");
        }
        bytes.push(net.bytes());
    }
    assert!(bytes[1] < bytes[0] * 2, "{bytes:?}");
}
