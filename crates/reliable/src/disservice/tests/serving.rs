//! Requests of others at a member: which it takes, what it passes on, and in which order it answers.

use hopcast_core::{Duration, Instant, Seed, Stream};

use super::super::bodies::Bodies;
use super::super::cache::{Cache, Value};
use super::super::message::Message;
use super::super::object::digest;
use super::super::serving::{Heard, Part, Repair, Serving};
use super::super::wire::{MAX_WANTS, MessageId, Missing, Shape, Symbol, Want};
use super::{at, id, member};

/// Bytes of a fragment, and fragments of a chunk.
const FRAGMENT: u16 = 10;
const CHUNK: u8 = 4;
/// Time within which the traffic memory knows of a fragment.
const MEMORY: Duration = Duration::from_secs(2);

fn random() -> Stream {
    Seed::new(1, 0).stream(&["test"], 0)
}

/// Adds a message of this many fragments, of which these are held; all of them if none is named.
fn hold(cache: &mut Cache, id: MessageId, fragments: u32, held: &[u32]) {
    let object = vec![7; fragments as usize * usize::from(FRAGMENT)];
    let length = object.len() as u32;
    let shape = Shape { length, fragment: FRAGMENT, chunk: CHUNK, digest: digest(&object) };
    let message = if held.is_empty() {
        Message::whole(shape, None, &object)
    } else {
        let mut message = Message::new(Instant::ZERO, shape, None);
        let bytes = &object[..FRAGMENT.into()];
        for &index in held {
            message.receive(Instant::ZERO, Symbol::Fragment { index, bytes });
        }
        message
    };
    cache.insert(id, message, Value::Done);
}

/// A cache with one message of this many fragments, of which these are held.
fn holding(fragments: u32, held: &[u32]) -> Cache {
    let mut cache = Cache::new(1 << 20, Bodies::default());
    hold(&mut cache, id(0), fragments, held);
    cache
}

fn fragments(id: MessageId, runs: &[std::ops::Range<u32>]) -> Want {
    Want { id, missing: Missing::Fragments(runs.to_vec()) }
}

fn run_of(id: MessageId, run: std::ops::Range<u32>) -> Want {
    fragments(id, &[run])
}

fn whole(first: MessageId, count: u32) -> Want {
    Want { id: first, missing: Missing::Whole(count) }
}

fn combinations(id: MessageId, chunk: u32, count: u8, unknown: std::ops::Range<u32>) -> Want {
    Want { id, missing: Missing::Combinations { chunk, count, unknown: vec![unknown] } }
}

fn serving() -> Serving {
    Serving::new(MEMORY, false)
}

/// Takes a request of which nothing is under way, and says what is to be passed on.
fn take(serving: &mut Serving, wants: &[Want], cache: &Cache) -> Vec<Want> {
    serving.take(at(0), (wants, &[]), (Heard::Until(0), 1), cache, |_| true)
}

/// All that is sent at a time.
fn sent(serving: &mut Serving, now: Instant) -> Vec<(u32, Repair, bool)> {
    let mut random = random();
    std::iter::from_fn(|| serving.next(now, &mut random))
        .map(|(id, repair, is_last)| (id.sequence, repair, is_last))
        .collect()
}

/// The fragments of message 0 that are sent.
fn sent_fragments(serving: &mut Serving, now: Instant) -> Vec<u32> {
    let of = |(sequence, repair, _)| match repair {
        Repair::Fragment(index) if sequence == 0 => index,
        other => panic!("{sequence} {other:?}"),
    };
    sent(serving, now).into_iter().map(of).collect()
}

/// The combinations that are sent, by chunk.
fn sent_combinations(serving: &mut Serving, now: Instant) -> Vec<u32> {
    let of = |(_, repair, _)| match repair {
        Repair::Combination(chunk) => chunk,
        Repair::Fragment(index) => panic!("fragment {index}"),
    };
    sent(serving, now).into_iter().map(of).collect()
}

#[test]
fn what_is_held_is_sent_and_the_rest_is_passed_on() {
    let cache = holding(10, &[0, 1, 4, 8]);
    let mut serving = serving();
    // What is not part of the message is neither sent nor passed on.
    let rest = take(&mut serving, &[fragments(id(0), &[0..6, 8..100])], &cache);
    assert_eq!(rest, [fragments(id(0), &[2..4, 5..6, 9..10])]);
    let fragment = |index, is_last| (0, Repair::Fragment(index), is_last);
    assert_eq!(
        sent(&mut serving, at(0)),
        [fragment(0, false), fragment(1, false), fragment(4, false), fragment(8, true)]
    );
    assert_eq!(serving.deadline(), None);
}

#[test]
fn what_is_held_whole_is_passed_on_to_nobody_and_what_is_not_served_as_it_came() {
    let cache = holding(3, &[]);
    let mut serving = serving();
    assert_eq!(take(&mut serving, &[run_of(id(0), 1..3)], &cache), []);
    assert_eq!(sent_fragments(&mut serving, at(0)), [1, 2]);
    let absent = [run_of(id(5), 1..3), combinations(id(5), 0, 2, 0..4)];
    assert_eq!(take(&mut serving, &absent, &cache), absent);
    let want = [run_of(id(0), 1..3)];
    let rest = serving.take(at(0), (&want, &[]), (Heard::Until(0), 1), &cache, |_| false);
    assert_eq!((&rest[..], serving.deadline()), (&want[..], None));
}

#[test]
fn two_requests_for_the_same_are_answered_once() {
    let cache = holding(6, &[]);
    let mut serving = serving();
    take(&mut serving, &[run_of(id(0), 1..4)], &cache);
    take(&mut serving, &[run_of(id(0), 3..5)], &cache);
    assert_eq!(sent_fragments(&mut serving, at(0)), [1, 2, 3, 4]);
}

#[test]
fn what_was_sent_after_the_transmission_that_was_heard_last_is_under_way() {
    let cache = holding(4, &[]);
    // Beyond what 16 bits say.
    let first = (3 << 16) - 2;
    for (heard, expected) in [(0, vec![0]), (1, vec![0, 1]), (3, vec![0, 1, 2, 3])] {
        let mut serving = serving();
        for number in 0..4 {
            serving.sends(at(number), first + number, id(0), Part::Fragment(number as u32));
        }
        let heard = Heard::Until((first + heard) as u16);
        let wants = [run_of(id(0), 0..4)];
        serving.take(at(0), (&wants, &[]), (heard, first + 4), &cache, |_| true);
        assert_eq!(sent_fragments(&mut serving, at(0)), expected, "{heard:?}");
    }
}

#[test]
fn of_what_was_asked_for_in_vain_only_what_was_sent_since_a_time_is_under_way() {
    let cache = holding(4, &[]);
    let mut serving = serving();
    for index in 0..4 {
        serving.sends(at(u64::from(index) * 100), u64::from(index) + 1, id(0), Part::Fragment(index));
        // Of another message, which is not asked for.
        serving.sends(at(u64::from(index) * 100), u64::from(index) + 1, id(1), Part::Fragment(0));
    }
    let wants = [run_of(id(0), 0..4)];
    serving.take(at(300), (&wants, &[]), (Heard::AllBefore(at(100)), 9), &cache, |_| true);
    assert_eq!(sent_fragments(&mut serving, at(300)), [0, 1]);
}

#[test]
fn only_a_request_to_anyone_is_not_answered_by_what_was_heard_of_late() {
    let cache = holding(4, &[]);
    let mut serving = serving();
    serving.overheard(at(0), member(2), id(0), Part::Fragment(1));
    serving.sends(at(0), 1, id(0), Part::Fragment(2));
    let wants = [run_of(id(0), 0..4)];
    let before = at(0) + MEMORY - Duration::from_millis(1);
    assert_eq!(serving.take(before, (&wants, &[]), (Heard::Nothing, 2), &cache, |_| true), []);
    assert_eq!(sent_fragments(&mut serving, before), [0, 3]);
    serving.take(at(0) + MEMORY, (&wants, &[]), (Heard::Nothing, 2), &cache, |_| true);
    assert_eq!(sent_fragments(&mut serving, at(0) + MEMORY), [0, 1, 2, 3]);
    serving.take(before, (&wants, &[]), (Heard::Until(1), 2), &cache, |_| true);
    assert_eq!(
        sent_fragments(&mut serving, before),
        [0, 1, 2, 3],
        "one to this member says what it has heard"
    );
}

#[test]
fn of_messages_in_a_row_those_that_are_absent_are_passed_on() {
    let mut cache = Cache::new(1 << 20, Bodies::default());
    [(1, &[][..]), (3, &[1]), (4, &[]), (6, &[])]
        .into_iter()
        .for_each(|(sequence, held)| hold(&mut cache, id(sequence), 2, held));
    let mut serving = serving();
    let serves = |id: MessageId| id.sequence != 4;
    let wants = [whole(id(0), 6)];
    let rest = serving.take(at(0), (&wants, &[]), (Heard::Until(0), 1), &cache, serves);
    assert_eq!(rest, [whole(id(0), 1), whole(id(2), 1), whole(id(4), 2)]);
    let fragment = |sequence, index, is_last| (sequence, Repair::Fragment(index), is_last);
    assert_eq!(
        sent(&mut serving, at(0)),
        [fragment(1, 0, false), fragment(1, 1, true), fragment(3, 1, true)],
        "of one that is held in part, that part; message 6 was not asked for"
    );
    assert_eq!(take(&mut serving, &[whole(id(6), 1)], &cache), []);
    assert_eq!(sent(&mut serving, at(0)).len(), 2);
}

#[test]
fn who_holds_a_part_sends_a_third_of_the_combinations_that_it_can_give() {
    let cache = holding(8, &[0, 1, 2, 4]);
    let mut serving = serving();
    // Three of the first chunk are held, two of them unknown to who asks: another can give more than the second.
    let rest = take(&mut serving, &[combinations(id(0), 0, 3, 1..4)], &cache);
    assert_eq!(sent_combinations(&mut serving, at(0)), [0]);
    assert_eq!(rest, [combinations(id(0), 0, 2, 1..4)]);
    // What this member will send is known then, so that the second needs only what it lacks.
    let rest = take(&mut serving, &[combinations(id(0), 0, 2, 2..4)], &cache);
    assert_eq!(
        (sent_combinations(&mut serving, at(0)), rest),
        (vec![0], vec![combinations(id(0), 0, 1, 3..4)])
    );
    assert_eq!(take(&mut serving, &[combinations(id(0), 1, 3, 5..8)], &cache).len(), 1, "nothing to give");
    assert_eq!(serving.deadline(), None);
    let all = holding(8, &[]);
    assert_eq!(take(&mut serving, &[combinations(id(0), 0, 3, 1..4)], &all), []);
    assert_eq!(sent_combinations(&mut serving, at(0)), [0, 0, 0]);
}

#[test]
fn combinations_that_were_heard_by_who_asks_count_as_known_until_it_has_asked_in_vain() {
    let cache = holding(8, &[0, 1, 2, 4]);
    let mut serving = serving();
    // It has one combination of fragments 2 and 3, and this member holds nothing beside fragment 2.
    let wants = [combinations(id(0), 0, 1, 2..4)];
    assert_eq!(take(&mut serving, &wants, &cache), [combinations(id(0), 0, 1, 3..4)]);
    assert_eq!(serving.deadline(), None);
    serving.take(at(0), (&wants, &[]), (Heard::AllBefore(at(0)), 1), &cache, |_| true);
    assert_eq!(sent_combinations(&mut serving, at(0)), [0], "that one may not be of fragment 2");
    let wants = [combinations(id(0), 0, 1, 3..4)];
    serving.take(at(0), (&wants, &[]), (Heard::AllBefore(at(0)), 1), &cache, |_| true);
    assert_eq!(serving.deadline(), None, "it holds none of that");
}

#[test]
fn who_holds_little_of_a_chunk_and_less_than_who_asks_gives_nothing_until_it_is_asked_again() {
    let cache = holding(8, &[0, 1, 2, 4]);
    // It has one of the second chunk, and who asks has two.
    let wants = [combinations(id(0), 1, 2, 4..6)];
    let mut serving = serving();
    assert_eq!(take(&mut serving, &wants, &cache), wants);
    assert_eq!(serving.deadline(), None);
    serving.take(at(0), (&wants, &[]), (Heard::AllBefore(at(0)), 1), &cache, |_| true);
    assert_eq!(sent_combinations(&mut serving, at(0)), [1]);
    // Nothing new of it has come since for some seconds.
    serving.take(at(3000), (&wants, &[]), (Heard::Until(0), 1), &cache, |_| true);
    assert_eq!(sent_combinations(&mut serving, at(3000)), [1]);
    // As much as who asks.
    let wants = [combinations(id(0), 1, 3, 4..7)];
    assert_eq!(take(&mut serving, &wants, &cache).len(), 1);
    assert_eq!(sent_combinations(&mut serving, at(0)), [1]);
}

#[test]
fn combinations_for_several_are_the_most_that_one_lacks_and_the_chunks_follow_each_other() {
    let cache = holding(8, &[]);
    let mut serving = serving();
    for (chunk, count) in [(1, 1), (0, 1), (0, 3), (0, 2)] {
        take(&mut serving, &[combinations(id(0), chunk, count, 0..8)], &cache);
    }
    let found = sent(&mut serving, at(0));
    assert!(found.iter().rev().skip(1).all(|&(.., is_last)| !is_last) && found[3].2, "{found:?}");
    let chunks: Vec<_> = found.into_iter().map(|(_, repair, _)| repair).collect();
    assert_eq!(chunks, [0, 0, 0, 1].map(Repair::Combination));
}

#[test]
fn combinations_that_are_under_way_count() {
    let cache = holding(8, &[]);
    let mut serving = serving();
    for (number, chunk) in [(1, 0), (2, 0), (3, 1)] {
        serving.sends(at(0), number, id(0), Part::Chunk(chunk));
    }
    let wants = [combinations(id(0), 0, 3, 0..4)];
    serving.take(at(0), (&wants, &[]), (Heard::Until(1), 4), &cache, |_| true);
    assert_eq!(sent_combinations(&mut serving, at(0)), [0, 0], "one of chunk 0");
    serving.take(at(0), (&wants, &[]), (Heard::Until(0), 4), &cache, |_| true);
    assert_eq!(sent_combinations(&mut serving, at(0)), [0], "two of them");
    let wants = [combinations(id(0), 0, 2, 0..4)];
    serving.take(at(0), (&wants, &[]), (Heard::Until(0), 4), &cache, |_| true);
    assert_eq!(serving.deadline(), None);
}

#[test]
fn what_another_sends_is_not_sent_again() {
    let cache = holding(8, &[]);
    let mut serving = serving();
    take(&mut serving, &[run_of(id(0), 0..3)], &cache);
    serving.overheard(at(0), member(2), id(0), Part::Fragment(1));
    serving.overheard(at(0), member(2), id(1), Part::Fragment(0));
    assert_eq!(sent_fragments(&mut serving, at(0)), [0, 2]);
    take(&mut serving, &[run_of(id(0), 1..2)], &cache);
    serving.overheard(at(0), member(2), id(0), Part::Fragment(1));
    assert_eq!(serving.deadline(), None, "the last");
    take(&mut serving, &[combinations(id(0), 0, 2, 0..4), combinations(id(0), 1, 1, 4..8)], &cache);
    serving.overheard(at(0), member(2), id(0), Part::Chunk(0));
    serving.overheard(at(0), member(2), id(0), Part::Chunk(1));
    serving.overheard(at(0), member(2), id(0), Part::Chunk(1));
    assert_eq!(sent_combinations(&mut serving, at(0)), [0]);
    take(&mut serving, &[combinations(id(0), 0, 1, 0..4)], &cache);
    serving.overheard(at(0), member(2), id(0), Part::Chunk(0));
    assert_eq!(serving.deadline(), None);
}

#[test]
fn combinations_of_who_has_passed_the_request_on_are_beside_those_of_this_member() {
    let cache = holding(4, &[]);
    let mut serving = serving();
    let wants = [combinations(id(0), 0, 2, 0..4)];
    serving.take(at(0), (&wants, &[member(2)]), (Heard::Until(0), 1), &cache, |_| true);
    serving.overheard(at(0), member(2), id(0), Part::Chunk(0));
    serving.overheard(at(0), member(3), id(0), Part::Chunk(0));
    assert_eq!(sent_combinations(&mut serving, at(0)), [0]);
}

#[test]
fn answers_wait_for_their_time_and_go_in_the_order_of_requests() {
    let mut cache = holding(1, &[]);
    (1..4).for_each(|sequence| hold(&mut cache, id(sequence), 1, &[]));
    let mut serving = serving();
    for (sequence, not_before) in [(2, 300), (0, 100), (1, 100), (3, 500)] {
        let wants = [run_of(id(sequence), 0..1)];
        serving.take(at(not_before), (&wants, &[]), (Heard::Until(0), 1), &cache, |_| true);
    }
    assert_eq!(serving.deadline(), Some(at(100)));
    assert_eq!(sent(&mut serving, at(99)), []);
    let sequences = |found: Vec<(u32, Repair, bool)>| {
        found.into_iter().map(|(sequence, ..)| sequence).collect::<Vec<_>>()
    };
    assert_eq!(serving.next(at(100), &mut random()).map(|(id, ..)| id.sequence), Some(0));
    assert_eq!(serving.deadline(), Some(Instant::ZERO), "another is due");
    // The third is due by then, and was asked for first.
    assert_eq!(sequences(sent(&mut serving, at(300))), [2, 1]);
    assert_eq!(serving.deadline(), Some(at(500)));
    serving.end(id(3));
    assert_eq!((serving.deadline(), sent(&mut serving, at(500))), (None, vec![]));
}

#[test]
fn what_is_ended_while_it_is_due_is_sent_no_more() {
    let cache = holding(3, &[]);
    let mut serving = serving();
    take(&mut serving, &[run_of(id(0), 0..3)], &cache);
    assert!(serving.next(at(0), &mut random()).is_some());
    serving.end(id(0));
    assert_eq!((serving.deadline(), sent(&mut serving, at(0))), (None, vec![]));
}

#[test]
fn a_message_that_is_brought_to_a_neighbour_is_sent_as_far_as_it_is_held() {
    let cache = holding(6, &[1, 4]);
    let mut serving = serving();
    serving.push(at(0), id(0), cache.get(id(0)).unwrap());
    assert_eq!(sent_fragments(&mut serving, at(0)), [1, 4]);
}

#[test]
fn where_anyone_answers_the_order_is_drawn() {
    let cache = holding(40, &[]);
    let wants = [run_of(id(0), 0..40)];
    let order = |draws| {
        let mut serving = Serving::new(MEMORY, draws);
        serving.take(at(0), (&wants, &[]), (Heard::Nothing, 0), &cache, |_| true);
        sent_fragments(&mut serving, at(0))
    };
    let (mut drawn, ascending) = (order(true), (0..40).collect::<Vec<_>>());
    assert_eq!(order(false), ascending);
    assert_ne!(drawn, ascending);
    drawn.sort_unstable();
    assert_eq!(drawn, ascending, "each once");
}

#[test]
fn requests_for_everything_are_bounded() {
    let mut cache = Cache::new(1 << 24, Bodies::default());
    (0..3000).for_each(|sequence| hold(&mut cache, id(sequence), 1, &[]));
    let mut serving = serving();
    // Those for which there is no room are asked for again, with what follows them.
    assert_eq!(take(&mut serving, &[whole(id(0), 3001)], &cache), []);
    take(&mut serving, &[run_of(id(2500), 0..1)], &cache);
    assert_eq!(
        sent(&mut serving, at(0)).iter().map(|&(sequence, ..)| sequence).collect::<Vec<_>>(),
        (0..1024).collect::<Vec<_>>()
    );
    // Every other one is absent.
    let mut cache = Cache::new(1 << 24, Bodies::default());
    (0..1000).for_each(|sequence| hold(&mut cache, id(sequence * 2), 1, &[]));
    let rest = take(&mut serving, &[whole(id(0), 2000)], &cache);
    assert_eq!(rest.len(), MAX_WANTS);
}

#[test]
fn of_what_was_sent_the_last_transmissions_are_remembered() {
    let mut cache = holding(1, &[]);
    (1..600).for_each(|sequence| hold(&mut cache, id(sequence), 1, &[]));
    let mut serving = serving();
    (0..600).for_each(|number| serving.sends(at(1), number, id(number as u32), Part::Fragment(0)));
    let wants: Vec<_> = [0, 87, 88, 599].map(|sequence| run_of(id(sequence), 0..1)).into();
    serving.take(at(0), (&wants, &[]), (Heard::AllBefore(at(0)), 600), &cache, |_| true);
    let sequences: Vec<_> = sent(&mut serving, at(0)).iter().map(|&(sequence, ..)| sequence).collect();
    assert_eq!(sequences, [0, 87], "512 of them");
}
