//! A node's configuration is read or is a mistake with a place, and what was read is one that a node can be made of.
#![no_main]

use hopcast_node::config::Config;
use hopcast_node::daemon;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Config::parse(text, "node.yaml") {
        Ok(config) => drop(daemon::machine(&config, 1)),
        Err(mistake) => assert!(mistake.to_string().starts_with("node.yaml"), "{mistake}"),
    }
});
