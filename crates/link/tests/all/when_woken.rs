//! When and how often a link is called changes nothing about what it does.

use crate::common::*;
use hopcast_core::{Duration, Instant, Rate};
use hopcast_link::{Config, Direction, Event, Jitter, Link, MediumConfig, PointToPoint, SwitchConfig};
use proptest::prelude::*;

fn point_to_point(config: Config) -> Box<dyn Link> {
    Box::new(PointToPoint::new(config, streams(1)))
}

fn medium_of(config: MediumConfig) -> Box<dyn Link> {
    Box::new(medium(config, 1))
}

/// A link by its configuration, with actions on it.
fn scene() -> impl Strategy<Value = (Scene, Vec<(Instant, Action)>)> {
    let pair = any::config().prop_flat_map(|config| (Just(Scene::Pair(config)), any::actions(2)));
    let shared = prop_oneof![2 => any::medium_config(), 1 => any::radio_config()];
    let shared = shared.prop_flat_map(|config| {
        let n = config.stations.len();
        let actions = if n == 0 { Just(Vec::new()).boxed() } else { any::actions(n).boxed() };
        (Just(Scene::Shared(config)), actions)
    });
    let switched = any::switch_config().prop_flat_map(|config| {
        let n = config.directions.len();
        let actions = if n == 0 { Just(Vec::new()).boxed() } else { any::actions(n).boxed() };
        (Just(Scene::Switched(config)), actions)
    });
    prop_oneof![pair, shared, switched]
}

#[derive(Clone, Debug)]
enum Scene {
    Pair(Config),
    Shared(MediumConfig),
    Switched(SwitchConfig),
}

impl Scene {
    fn link(&self) -> Box<dyn Link> {
        match self.clone() {
            Self::Pair(config) => point_to_point(config),
            Self::Shared(config) => medium_of(config),
            Self::Switched(config) => Box::new(switch(&config, 1)),
        }
    }
}

fn delivered(said: &Said) -> Said {
    said.iter().filter(|(_, event)| matches!(event, Event::Delivered { .. })).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn wakes_without_cause_change_no_delivery_and_no_counter(
        (scene, actions) in scene(),
        wakes in proptest::collection::vec(0u64..400_000, 0..100),
        report in proptest::bool::ANY,
    ) {
        let (mut calm, mut nervous) = (scene.link(), scene.link());
        calm.report_sent(report);
        nervous.report_sent(report);
        let mut more = actions.clone();
        more.extend(wakes.into_iter().map(|at| (nanos(at), Action::Wake)));
        more.sort_by_key(|(at, _)| *at);
        prop_assert_eq!(run(&mut *calm, &actions, END), run(&mut *nervous, &more, END));
        prop_assert_eq!(all_counters(&mut *calm, END), all_counters(&mut *nervous, END));
    }

    #[test]
    fn reports_change_no_delivery_and_no_counter((scene, actions) in scene()) {
        let (mut silent, mut telling) = (scene.link(), scene.link());
        telling.report_sent(true);
        let (less, more) = (run(&mut *silent, &actions, END), run(&mut *telling, &actions, END));
        prop_assert_eq!(&less, &delivered(&less));
        prop_assert_eq!(less, delivered(&more));
        prop_assert_eq!(all_counters(&mut *silent, END), all_counters(&mut *telling, END));
    }

    #[test]
    fn asking_for_counters_changes_nothing(
        (scene, actions) in scene(),
        asked in proptest::collection::vec(0u64..400_000, 1..20),
    ) {
        let (mut calm, mut asked_often) = (scene.link(), scene.link());
        let before = run(&mut *calm, &actions, END);
        let (mut said, mut actions) = (Vec::new(), actions);
        for at in asked {
            actions.push((nanos(at), Action::Wake));
        }
        actions.sort_by_key(|(at, _)| *at);
        for (at, action) in &actions {
            if let Action::Wake = action {
                // Not even woken before.
                all_counters(&mut *asked_often, *at);
                drain(&mut *asked_often, *at, &mut said);
            } else {
                said.extend(run(&mut *asked_often, &[(*at, action.clone())], *at));
            }
        }
        wake_until(&mut *asked_often, END, &mut said);
        let by_link = |said: &Said| said.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>();
        prop_assert_eq!(by_link(&before), by_link(&said));
        prop_assert_eq!(all_counters(&mut *calm, END), all_counters(&mut *asked_often, END));
    }

    #[test]
    fn counters_at_an_instant_are_those_of_a_link_woken_all_the_time(
        (scene, actions) in scene(),
        at in 0u64..300_000,
    ) {
        let at = nanos(at);
        let actions: Vec<_> = actions.into_iter().filter(|(then, _)| *then <= at).collect();
        let (mut asked, mut nervous) = (scene.link(), scene.link());
        for (then, action) in &actions {
            match action {
                Action::Offer(from, frame) => asked.offer(*then, *from, frame.clone()),
                Action::Change(from, change) => asked.change(*then, *from, change),
                Action::Wake => {}
            }
        }
        run(&mut *nervous, &actions, at);
        prop_assert_eq!(all_counters(&mut *asked, at), all_counters(&mut *nervous, at));
    }

    #[test]
    fn a_link_woken_late_says_the_same_in_the_same_order((scene, actions) in scene(), report in proptest::bool::ANY) {
        let (mut exact, mut late) = (scene.link(), scene.link());
        exact.report_sent(report);
        late.report_sent(report);
        // Both see a row of changes and offers; only one is woken in between, and asked what happened.
        for (at, action) in &actions {
            if let Action::Offer(from, frame) = action {
                late.offer(*at, *from, frame.clone());
            } else if let Action::Change(from, change) = action {
                late.change(*at, *from, change);
            }
        }
        let mut said = Vec::new();
        drain(&mut *late, END, &mut said);
        // At one instant, arrivals come after what is offered then, which they could not when woken in time.
        let exact = run(&mut *exact, &actions, END);
        for to in 0..late.attachments() {
            let at = |said: &Said| said.iter().filter_map(|(_, event)| match event {
                Event::Delivered { from, to: receiver, frame, .. } if *receiver == to => Some((*from, frame.clone())),
                _ => None,
            }).collect::<Vec<_>>();
            prop_assert_eq!(at(&exact), at(&said));
        }
        prop_assert_eq!(exact.len(), said.len());
    }
}

#[test]
fn with_jitter_a_link_asks_to_be_woken_when_the_next_frame_can_arrive_at_the_earliest() {
    let ms = Duration::from_millis;
    // 1,250 bytes leave in a millisecond; the second frame may be the first to arrive.
    for (jitter, earliest) in [
        (Jitter::Uniform(ms(5)), ms(1 + 40 - 5)),
        (Jitter::Uniform(ms(50)), ms(1)),
        // The generator's normal numbers end before 13 deviations.
        (Jitter::Normal(ms(2)), ms(1 + 40 - 26)),
        (Jitter::Normal(ms(4)), ms(1)),
    ] {
        let rate = Some(Rate::from_mbit(10));
        let direction = Direction { rate, delay: ms(40), jitter, reorder: true, ..Direction::default() };
        let mut link = both_ways(&direction, 1);
        for number in 0..2 {
            link.offer(Instant::ZERO, 0, frame(number, 1_250));
        }
        assert_eq!(link.deadline(), Some(Instant::ZERO + earliest), "{jitter:?}");
    }
}
