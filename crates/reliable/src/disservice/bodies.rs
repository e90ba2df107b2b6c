//! The bodies of whole messages, which members of one process have in memory once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::wire::MessageId;

/// The fragments of a whole message, all of which are here.
pub(super) type Fragments = Box<[Box<[u8]>]>;
/// The same, which several members hold.
pub(super) type Body = Arc<Fragments>;

/// Bodies of the whole messages that some members hold, so that those that are equal are in memory once: in a process
/// with many members, as one that runs a network in virtual time. What a member does is the same without.
#[derive(Clone, Debug, Default)]
pub struct Bodies(Arc<Mutex<Pool>>);

#[derive(Debug, Default)]
struct Pool {
    bodies: BTreeMap<MessageId, Weak<Fragments>>,
    /// Number of bodies from which on those that nobody holds any more are looked for.
    full: usize,
}

/// Bodies below which nobody looks for those that are gone: of so many the names take some kilobytes.
const MIN_FULL: usize = 64;

impl Bodies {
    /// The body of a message, as another member may hold it already. Two that differ are both kept.
    pub(super) fn share(&self, id: MessageId, fragments: Fragments) -> Body {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = pool.bodies.get(&id).and_then(Weak::upgrade)
            && *held == fragments
        {
            return held;
        }
        let body = Arc::new(fragments);
        if pool.bodies.len() >= pool.full.max(MIN_FULL) {
            pool.bodies.retain(|_, body| body.strong_count() > 0);
            pool.full = pool.bodies.len() * 2;
        }
        pool.bodies.insert(id, Arc::downgrade(&body));
        body
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::{Cache, Value};
    use super::super::message::{Arrival, Message};
    use super::super::object::digest;
    use super::super::tests::{at, id};
    use super::super::wire::{Shape, Symbol};
    use super::*;

    fn fragments(byte: u8) -> Fragments {
        vec![vec![byte; 3].into_boxed_slice(), vec![byte].into_boxed_slice()].into()
    }

    #[test]
    fn equal_bodies_of_a_message_are_one_and_others_are_not() {
        let bodies = Bodies::default();
        let [first, same, other] = [1, 1, 2].map(|byte| bodies.clone().share(id(0), fragments(byte)));
        assert!(Arc::ptr_eq(&first, &same) && *other == fragments(2) && *first == fragments(1));
        assert!(!Arc::ptr_eq(&first, &bodies.share(id(1), fragments(1))), "of another message");
    }

    #[test]
    fn a_publisher_and_those_that_received_its_message_have_one_body() {
        let (bodies, object) = (Bodies::default(), [7; 25]);
        let shape = Shape { length: 25, fragment: 10, chunk: 4, digest: digest(&object) };
        let mut caches = [(); 3].map(|()| Cache::new(1 << 20, bodies.clone()));
        caches[0].insert(id(0), Message::whole(shape, None, &object), Value::Unsent);
        for cache in &mut caches[1..] {
            cache.insert(id(0), Message::new(at(0), shape, None), Value::Wanted);
            let receive = |(index, bytes)| cache.receive(at(0), id(0), Symbol::Fragment { index, bytes });
            let arrivals: Vec<_> = (0..).zip(object.chunks(10)).map(receive).collect();
            assert_eq!(arrivals, [Arrival::New, Arrival::New, Arrival::Whole]);
        }
        let held = || bodies.0.lock().unwrap().bodies[&id(0)].strong_count();
        assert_eq!(held(), 3);
        assert!(caches.iter().all(|cache| cache.get(id(0)).unwrap().fragment(2) == Some(&object[20..])));
        caches.iter_mut().for_each(|cache| _ = cache.remove(id(0)));
        assert_eq!(held(), 0);
    }

    #[test]
    fn what_nobody_holds_any_more_is_forgotten() {
        let bodies = Bodies::default();
        let held: Vec<_> = (0..100).map(|sequence| bodies.share(id(sequence), fragments(1))).collect();
        (100..10_000).for_each(|sequence| _ = bodies.share(id(sequence), fragments(1)));
        assert!(bodies.0.lock().unwrap().bodies.len() <= 201);
        assert!(
            held.iter().zip(0..).all(|(body, at)| Arc::ptr_eq(body, &bodies.share(id(at), fragments(1))))
        );
    }
}
