//! Routes are the shortest paths, and are so again soon after a change.

use hopcast_core::{Duration, Seed, Stream};

use super::net::{DELAY, End, LinkId, Net, RouterId, link, seconds};
use crate::link_state::Config;

/// Time in which a net that has just started has its routes: Hellos in the first second, an advertisement again after
/// the minimum interval, and computing twice.
fn start() -> Duration {
    seconds(1.0 + 5.0 + 2.5)
}

fn chain(routers: usize) -> Vec<Vec<End>> {
    (1..routers).map(|router| link(&[router - 1, router])).collect()
}

fn ring(routers: usize) -> Vec<Vec<End>> {
    (0..routers).map(|router| link(&[router, (router + 1) % routers])).collect()
}

fn grid(side: usize) -> Vec<Vec<End>> {
    let right = |at: usize| (at % side + 1 < side).then(|| link(&[at, at + 1]));
    let down = |at: usize| (at + side < side * side).then(|| link(&[at, at + side]));
    (0..side * side).flat_map(|at| [right(at), down(at)]).flatten().collect()
}

/// Links of two or more routers, with costs of their own in each direction; all routers are joined.
fn random_links(random: &mut Stream) -> Vec<Vec<End>> {
    let routers = 2 + random.below(14) as usize;
    let mut ends: Vec<Vec<RouterId>> =
        (1..routers).map(|router| vec![router, random.below(router as u64) as usize]).collect();
    for _ in 0..random.below(routers as u64 + 1) {
        let count = 2 + random.below(3) as usize;
        let mut members: Vec<RouterId> = Vec::new();
        for _ in 0..count {
            let router = random.below(routers as u64) as usize;
            if !members.contains(&router) {
                members.push(router);
            }
        }
        if members.len() > 1 {
            ends.push(members);
        }
    }
    let mut end = |router: RouterId| End { router, cost: 1 + random.below(20) as u16, area: 0 };
    ends.into_iter().map(|ends| ends.into_iter().map(&mut end).collect()).collect()
}

#[test]
fn chains_rings_and_grids_have_the_shortest_paths_within_seconds() {
    for links in [chain(2), chain(12), ring(9), grid(4), vec![link(&[0, 1, 2, 3, 4])]] {
        let mut net = Net::new(Config::default(), links);
        net.converge(start());
        net.run(seconds(60.0));
        assert_eq!(net.first_wrong(), None);
    }
}

#[test]
fn a_link_that_is_seen_to_fail_is_avoided_after_the_delay_of_computing() {
    for links in [ring(9), grid(4)] {
        for cut in [0, links.len() / 2] {
            let mut net = Net::new(Config::default(), links.clone());
            net.run(seconds(60.0));
            net.set_up(cut, false);
            let flooding = DELAY * links.len() as u64;
            let took = net.converge(net.config.spf_delay + flooding + Duration::from_millis(10));
            assert!(took >= net.config.spf_delay, "{took}");
            net.run(seconds(30.0));
            net.set_up(cut, true);
            // Hellos in the first second, the exchange, and computing.
            net.converge(seconds(1.0 + 1.5));
        }
    }
}

#[test]
fn a_link_that_fails_unseen_is_avoided_after_the_dead_interval() {
    for (hello, dead) in [(10.0, 40.0), (1.0, 4.0)] {
        let (hello_interval, dead_interval) = (seconds(hello), seconds(dead));
        let config = Config { hello_interval, dead_interval, carrier: false, ..Config::default() };
        let mut net = Net::new(config, ring(9));
        net.run(seconds(60.0));
        net.is_silent[4] = true;
        let flooding = DELAY * 9;
        let took = net.converge(dead_interval + net.config.spf_delay + flooding + Duration::from_millis(10));
        assert!(took >= dead_interval.saturating_sub(hello_interval), "{took}");
    }
}

#[test]
fn a_router_that_dies_is_avoided_after_the_dead_interval() {
    let mut net = Net::new(Config::default(), grid(4));
    net.run(seconds(60.0));
    net.stop(5);
    let flooding = DELAY * 16;
    // Its neighbours miss it one after the other, within one hello interval, and each computation holds the next.
    let (dead, delay, hold) = (net.config.dead_interval, net.config.spf_delay, net.config.spf_hold);
    net.converge(dead + delay + hold * 4 + flooding);
    net.start(5);
    net.converge(start() + net.config.hello_interval);
}

#[test]
fn random_nets_have_the_shortest_paths_whatever_is_cut_and_mended() {
    for seed in 0..40 {
        let mut random = Seed::new(seed, 0).stream(&["random nets"], 0);
        let links = random_links(&mut random);
        let count = links.len() as u64;
        let mut net = Net::new(Config::default(), links);
        net.run(seconds(20.0));
        assert_eq!(net.first_wrong(), None, "seed {seed}");
        let mut is_up = vec![true; count as usize];
        for step in 0..6 {
            for _ in 0..=random.below(2) {
                let cut = random.below(count) as LinkId;
                is_up[cut] = !is_up[cut];
                net.set_up(cut, is_up[cut]);
            }
            net.run(seconds(20.0));
            assert_eq!(net.first_wrong(), None, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn a_net_that_loses_a_third_of_all_messages_has_the_shortest_paths() {
    for seed in 0..10 {
        let mut random = Seed::new(seed, 0).stream(&["lossy nets"], 0);
        // Sixteen Hellos in a row are not lost.
        let config =
            Config { dead_interval: seconds(16.0), hello_interval: seconds(1.0), ..Config::default() };
        let mut net = Net::stopped(config, random_links(&mut random));
        net.loss = 0.3;
        net.start_all();
        net.converge(seconds(90.0));
        net.run(seconds(300.0));
        assert_eq!(net.first_wrong(), None, "seed {seed}");
        let again: u64 = (0..net.routers()).map(|one| net.counter(one, "link_state_retransmissions")).sum();
        assert!(again > 0);
        net.set_up(0, false);
        net.converge(seconds(60.0));
    }
}

#[test]
fn nothing_but_hellos_is_sent_in_peace_until_advertisements_are_refreshed() {
    let mut net = Net::new(Config::default(), grid(4));
    let updates = |net: &Net| -> u64 { (0..16).map(|one| net.counter(one, "link_state_updates")).sum() };
    net.run(seconds(60.0));
    let before = updates(&net);
    net.run(seconds(1500.0));
    assert_eq!(updates(&net), before);
    net.run(seconds(3.0 * 3600.0));
    assert!(updates(&net) > before);
    let sum = |name| (0..16).map(|one| net.counter(one, name)).sum::<u64>();
    // Two of each router, five or six times each since; nothing has changed with it.
    let originated = sum("link_state_originated");
    assert!((16 * 2 * 7..=16 * (2 * 9 + 4)).contains(&originated), "{originated}");
    assert_eq!((sum("link_state_expired"), sum("link_state_retransmissions")), (0, 0));
    assert!(sum("link_state_computations") < 16 * 12, "{}", sum("link_state_computations"));
}

#[test]
fn the_same_seed_gives_the_same_messages() {
    let run = || {
        let mut net = Net::stopped(Config::default(), grid(4));
        net.loss = 0.1;
        net.start_all();
        net.run(seconds(120.0));
        (net.sent, (0..16).map(|one| net.routes(one)).collect::<Vec<_>>())
    };
    assert_eq!(run(), run());
}
