//! The study of MEADcast at scale: discovery, lists and delivery in trees of many routers.

#![allow(clippy::unwrap_used)]

use crate::common::studies::{parameter, study};

#[test]
fn hundreds_of_routers_and_receivers_are_found_and_served_with_few_bytes_more_than_by_ip_multicast() {
    let document = study("meadcast-scale", &[]);
    for run in &document.runs {
        let (tree, form) =
            (parameter(run, "topology.tree.fanout"), parameter(run, "groups.all-hosts.delivery"));
        let (receivers, routers_on_the_way) = match tree {
            "[3, 3, 3]" => (27, 3),
            "[4, 4, 4, 3]" => (192, 4),
            _ => (882, 4),
        };
        let flow = &run.flows[0];
        let counter =
            |name: &str| flow.counters.get(&format!("meadcast_sender_{name}")).copied().unwrap_or(0);
        let case = format!("{tree} {form}");
        assert_eq!((flow.receivers.len(), flow.figures.reliability), (receivers, Some(1.0)), "{case}");
        if form == "ip-multicast" {
            continue;
        }
        let receivers = receivers as u64;
        assert_eq!([counter("requests"), counter("unicast")], [receivers, 0], "{case}");
        assert_eq!(counter("responses"), receivers * routers_on_the_way, "{case}");
        assert_eq!(counter("listed"), receivers * counter("data"), "{case}");
        assert_eq!(run.hosts.get("mead.refused_rate"), None, "{case}");
        let more = -flow.figures.network_saving.unwrap();
        match form {
            "revision" => assert!((0.005..0.03).contains(&more), "{case}: {more}"),
            _ => assert!((0.3..1.1).contains(&more), "{case}: {more}"),
        }
        let lists = counter("packets") / counter("data");
        let most = match form {
            "thesis" => 4 * receivers / 18 + 1,
            "thesis-32" => receivers / 12,
            _ => receivers / 80 + 1,
        };
        assert!(lists <= most, "{case}: {lists} lists");
    }
    assert_eq!(document.runs.len(), 3 * 4);
}
