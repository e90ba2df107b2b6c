//! Maps for what a log has millions of. They are seeded anew in each process, and nothing iterates over them.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

pub(super) type QuickMap<K, V> = HashMap<K, V, RandomState>;
pub(super) type QuickSet<K> = HashSet<K, RandomState>;
