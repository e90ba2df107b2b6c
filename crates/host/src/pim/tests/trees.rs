//! Random nets: members come and go, links are cut, routers crash; when all is quiet each link carries what the reverse
//! paths say.

use hopcast_core::{Duration, Seed, Stream};

use super::net::{LinkId, Net, RouterId, after};
use crate::pim::Config;

/// Time after which every timer of a changed net has gone off: of neighbours, joins and asserts, one after another.
const QUIET: u64 = 600;

/// Links of 3 to 20 routers that are all connected: pairs and links of several, and links to hosts alone, which come
/// last.
fn links(random: &mut Stream) -> (Vec<Vec<RouterId>>, usize) {
    let routers = 3 + random.below(18) as usize;
    let mut links: Vec<Vec<RouterId>> = Vec::new();
    for router in 1..routers {
        links.push(vec![random.below(router as u64) as usize, router]);
    }
    for _ in 0..random.below(routers as u64) {
        let mut link: Vec<RouterId> =
            (0..2 + random.below(3)).map(|_| random.below(routers as u64) as usize).collect();
        link.sort_unstable();
        link.dedup();
        if link.len() > 1 {
            links.push(link);
        }
    }
    let hosts = 2 + random.below(5) as usize;
    for _ in 0..hosts {
        let mut link: Vec<RouterId> =
            (0..1 + random.below(3)).map(|_| random.below(routers as u64) as usize).collect();
        link.sort_unstable();
        link.dedup();
        links.push(link);
    }
    (links, hosts)
}

fn change(net: &mut Net, random: &mut Stream, links: &[Vec<RouterId>], hosts: usize, routers: usize) {
    let any: LinkId = random.below(links.len() as u64) as usize;
    let of_hosts = links.len() - 1 - random.below(hosts as u64) as usize;
    match random.below(9) {
        0..=2 => net.set_members(of_hosts, !net.has_members(of_hosts)),
        // Members on links that others' trees cross, too.
        3 | 4 => net.set_members(any, !net.has_members(any)),
        5 | 6 => net.set_up(any, !net.is_up(any)),
        _ => {
            let router = random.below(routers as u64) as usize;
            if net.is_alive(router) { net.stop(router) } else { net.start(router) }
        }
    }
}

#[test]
fn whatever_has_happened_each_link_carries_one_copy_along_the_reverse_paths() {
    let config = Config { route_check: Duration::from_secs(10), ..Config::default() };
    let (mut carried, mut asserts) = (0, 0);
    for seed in 0..60 {
        let mut random = Seed::new(seed, 0).stream(&["trees"], 0);
        let (links, hosts) = links(&mut random);
        let routers = links.iter().flatten().max().unwrap() + 1;
        let source = links.len() - 1 - random.below(hosts as u64) as usize;
        let mut net = Net::new(config, links.clone(), source, seed % 2 == 1);
        net.run(after(20.0));
        for round in 0..5 {
            for _ in 0..=random.below(4) {
                change(&mut net, &mut random, &links, hosts, routers);
                net.run_sending(after(random.uniform() * 10.0), after(1.0));
            }
            net.run_sending(Duration::from_secs(QUIET), after(10.0));
            let (copies, expected) = (net.send(), net.expected());
            assert_eq!(copies, expected, "seed {seed}, round {round}, links {links:?}, {}", net.state());
            carried += expected.iter().sum::<u32>();
        }
        asserts += (0..routers)
            .filter(|&one| net.is_alive(one))
            .map(|one| net.counter(one, "pim_asserts"))
            .sum::<u64>();
    }
    assert!(carried > 500 && asserts > 10, "{carried} {asserts}");
}
