//! Messages to subscribers on one segment.

use hopcast_core::Duration;

use super::*;
use crate::testing::contents;

#[test]
fn what_is_lost_is_asked_for_and_all_have_all_once() {
    for (seed, loss) in [(1, 0.0), (2, 0.1), (3, 0.3), (4, 0.5)] {
        for is_coded in [false, true] {
            let policy = Policy { is_coded, ..policy() };
            let mut net = network(seed, 3, 0, &policy, loss);
            let messages: Vec<_> = (0..20).map(|at| contents(300 * at, at as u64)).collect();
            messages.iter().for_each(|message| publish(&mut net, 0, message));
            let done = net.run(Duration::from_secs(120), |net| {
                (1..=3).all(|member| net.members[member].up.len() >= messages.len())
            });
            for member in 1..=3 {
                let found = counted(received(&net, member));
                assert_eq!(
                    found,
                    counted(messages.clone()),
                    "loss {loss}, coded {is_coded}, member {member}, {done}"
                );
            }
            // Chosen: what three that lose half take at most, with the back-off of the last requests.
            assert!(net.now.as_secs_f64() < 60.0, "loss {loss}: {}", net.now);
        }
    }
}

/// A server took a repair for one under way that was its last transmission, and was lost: whoever asked again waited
/// for its next summary.
#[test]
fn a_repair_that_was_the_last_transmission_of_its_server_is_sent_again() {
    let mut seconds = 0.0;
    for seed in 0..20 {
        let mut net = network(seed, 1, 0, &policy(), 0.3);
        net.members[0].link.loss = 0.3;
        (0..600).for_each(|at| publish(&mut net, 0, &contents(1370, at)));
        net.run(Duration::from_secs(60), |net| net.members[1].up.len() >= 600);
        seconds += net.now.as_secs_f64() / 20.0;
    }
    // At 1 Mbit/s 600 packets take 10.0 s if each is sent 1 / 0.7 times.
    assert!((9.7..11.0).contains(&seconds), "{seconds}");
}
