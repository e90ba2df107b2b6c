//! Areas: what is reached in one area is reached in several.

use hopcast_core::Seed;

use super::net::{End, Net, RouterId, address, in_area, link, seconds};
use crate::link_state::{Attached, Config};
use crate::prefixes::Prefix;

/// Routers 0 to 2 in the backbone, each with a ring in an area of its own; areas 1 and 2 have two border routers.
fn three_areas() -> Vec<Vec<End>> {
    vec![
        link(&[0, 1]),
        link(&[1, 2]),
        link(&[2, 0]),
        in_area(1, &[0, 3]),
        in_area(1, &[3, 4]),
        in_area(1, &[4, 1]),
        in_area(2, &[1, 5]),
        in_area(2, &[5, 6]),
        in_area(2, &[6, 2]),
        in_area(3, &[2, 7]),
        in_area(3, &[7, 8]),
    ]
}

/// Every router reaches every other, or as many as are expected.
fn reach(net: &Net) -> Vec<(RouterId, RouterId)> {
    let all = (0..net.routers()).flat_map(|from| (0..net.routers()).map(move |to| (from, to)));
    all.filter(|&(from, to)| [false, true].iter().all(|&v6| net.cost(from, to, v6).is_some())).collect()
}

#[test]
fn all_areas_reach_each_other_and_no_way_is_a_loop() {
    let mut net = Net::new(Config::default(), three_areas());
    net.run(seconds(30.0));
    assert_eq!(reach(&net).len(), 81);
    // Within an area, and over the backbone, costs are the lowest; between areas of two borders too.
    assert_eq!(net.first_wrong(), None);
    // Nobody has the links of another area: routers know those of their areas alone.
    let known = |router| net.counter(router, "link_state_installed");
    assert!(known(8) < known(2), "{} {}", known(8), known(2));
}

#[test]
fn a_border_router_that_dies_is_replaced_by_another_and_an_area_of_one_is_cut_off() {
    let mut net = Net::new(Config::default(), three_areas());
    net.run(seconds(30.0));
    net.stop(0);
    net.run(seconds(60.0));
    assert_eq!(reach(&net).len(), 64);
    net.stop(2);
    net.run(seconds(60.0));
    // 7 and 8 are alone; 1 and 3 to 6 are together.
    assert_eq!(reach(&net).len(), 5 * 5 + 2 * 2);
    net.start(0);
    net.start(2);
    net.run(seconds(60.0));
    assert_eq!(reach(&net).len(), 81);
    assert_eq!(net.first_wrong(), None);
}

#[test]
fn an_area_whose_inside_is_cut_is_reached_by_the_border_that_still_can() {
    let mut net = Net::new(Config::default(), three_areas());
    net.run(seconds(30.0));
    net.set_up(4, false);
    net.run(seconds(30.0));
    assert_eq!(reach(&net).len(), 81);
    net.set_up(5, false);
    net.run(seconds(30.0));
    assert_eq!(reach(&net).len(), 64 + 1, "router 4 is alone");
}

/// Or else what one border router has heard would come back to it by another.
#[test]
fn no_area_joins_the_parts_of_a_backbone() {
    let mut net = Net::new(Config::default(), three_areas());
    net.run(seconds(30.0));
    net.set_up(0, false);
    net.set_up(2, false);
    net.run(seconds(30.0));
    let reaches = |from, to| net.cost(from, to, false).is_some();
    assert!(reaches(0, 1) && reaches(3, 5) && reaches(1, 5), "within an area, and over one border router");
    assert!(!reaches(0, 5) && !reaches(0, 7), "over two");
}

#[test]
fn routers_of_different_areas_on_one_link_do_not_hear_each_other() {
    let ends = vec![End { router: 0, cost: 10, area: 0 }, End { router: 1, cost: 10, area: 1 }];
    let mut net = Net::new(Config::default(), vec![ends]);
    net.run(seconds(60.0));
    assert_eq!(reach(&net).len(), 2);
    assert!(net.counter(0, "link_state_refused_area") > 4);
}

#[test]
fn random_areas_reach_what_one_area_reaches() {
    for seed in 0..30 {
        let mut random = Seed::new(seed, 0).stream(&["random areas"], 0);
        // A backbone that is a tree with some more links, and areas of some routers at one or two border routers.
        let backbone = 2 + random.below(5) as usize;
        let mut links: Vec<Vec<End>> =
            (1..backbone).map(|one| link(&[one, random.below(one as u64) as usize])).collect();
        links.push(link(&[0, backbone - 1]));
        let mut next = backbone;
        for area in 1..=1 + random.below(4) as u32 {
            let borders = 1 + random.below(2);
            let first = next;
            for _ in 0..1 + random.below(4) {
                if next > first {
                    links.push(in_area(area, &[next, first + random.below((next - first) as u64) as usize]));
                }
                next += 1;
            }
            for _ in 0..borders {
                let inside = first + random.below((next - first) as u64) as usize;
                links.push(in_area(area, &[random.below(backbone as u64) as usize, inside]));
            }
        }
        let count = links.len() as u64;
        let mut net = Net::new(Config::default(), links.clone());
        net.run(seconds(30.0));
        assert_eq!(reach(&net).len(), next * next, "seed {seed}");
        for cut in 0..3 {
            net.set_up(random.below(count) as usize, false);
            net.run(seconds(30.0));
            // Each route leads there: none is a loop, and nobody has one to whom no link leads.
            for (from, to) in (0..next).flat_map(|from| (0..next).map(move |to| (from, to))) {
                let has_route = from != to && net.route(from, address(to, false)).is_some();
                let arrives = net.cost(from, to, false).is_some();
                assert!(!has_route || arrives, "seed {seed}, cut {cut}: {from} to {to}");
            }
        }
    }
}

#[test]
fn what_is_attached_to_a_router_is_reached_from_all_areas_until_its_link_is_down() {
    let prefix: Prefix = Prefix::new("10.7.0.0".parse().unwrap(), 24).unwrap();
    let host = Prefix::of("fd00::99".parse().unwrap());
    let mut net = Net::stopped(Config::default(), three_areas());
    // On the link from 7 to 8.
    let attached = vec![
        Attached { to: prefix, interface: 0, gateway: None },
        Attached { to: host, interface: 0, gateway: Some(host.first()) },
    ];
    net.attached.insert(8, attached);
    net.start_all();
    net.run(seconds(30.0));
    let far = "10.7.0.77".parse().unwrap();
    for router in 0..8 {
        assert!(net.route(router, far).is_some() && net.route(router, host.first()).is_some(), "{router}");
    }
    assert_eq!(net.route(8, host.first()), Some(host.first()));
    net.set_up(10, false);
    net.run(seconds(30.0));
    for router in 0..8 {
        assert_eq!((net.route(router, far), net.route(router, host.first())), (None, None), "{router}");
    }
}
