//! The text of a query: it is read, or refused with one line; what it chooses can be followed and told.
#![no_main]

use std::cell::LazyCell;
use std::net::{IpAddr, Ipv4Addr};

use hopcast_core::{Instant, Port};
use hopcast_trace::log::{Flow, HOST, Layer, Named, Place};
use hopcast_trace::view::story_text;
use hopcast_trace::{Log, MemoryLog, Query, follow};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static LOG: LazyCell<Log> = LazyCell::new(log);
}

fuzz_target!(|text: &str| {
    LOG.with(|log| match Query::parse(text, log) {
        Ok(query) => _ = story_text(&follow(log, &query), 2),
        Err(error) => assert!(!error.expected.is_empty() && error.place.starts_with("word ")),
    });
});

/// Two nodes with an interface and a host each, between which some datagrams are lost and some arrive.
fn log() -> Log {
    let memory = MemoryLog::default();
    let mut recorder = memory.recorder(1 << 20);
    let names = ["a", "b"].map(ToOwned::to_owned);
    for (number, node) in (0..).zip(names.clone()) {
        let (name, link, mac) = ("eth0".to_owned(), "a-b".to_owned(), [2, 0, 0, 0, 0, number]);
        recorder.place(&Place::Interface { node, name, link, mtu: 1500, mac });
    }
    for (number, name) in (0..).zip(names) {
        recorder.place(&Place::Machine { node: name.clone(), name: HOST.to_owned(), flow: None });
        let addresses = vec![Ipv4Addr::new(10, 0, 0, number).into()];
        recorder.name(&Named::Node { name, addresses });
    }
    let addresses = vec![IpAddr::from([239, 1, 1, 1])];
    recorder.name(&Named::Group { name: "g".to_owned(), addresses });
    let (name, from) = ("f".to_owned(), "a".to_owned());
    recorder.name(&Named::Flow(Flow { name, from, port: 7, to: vec!["b".to_owned()] }));
    for number in 0..8 {
        let at = Instant::from_nanos(u64::from(number) * 1_000_000);
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 8, 0];
        frame.extend([0x45, 0, 0, 44, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 10, 0, 0, 1]);
        frame.extend([0, 7, 0, 7, 0, 24, 0, 0]);
        frame.extend([number; 16]);
        recorder.handed_on(at, 2, Port::Below(0), (Layer::Frame, &frame), None);
        if number % 2 == 0 {
            recorder.dropped(at, 0, Some(1), &frame, "lost on the link");
            continue;
        }
        recorder.delivered(at, 1, 0, &frame);
        let content = recorder.arrived(at, 3, Port::Below(0), Layer::Frame, &frame);
        recorder.ended(at, 3, Some((Port::Below(0), content)), None);
    }
    recorder.finish().expect("memory");
    Log::read(memory.take()).expect("a log")
}
