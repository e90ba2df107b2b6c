//! The options of `norm`: that each changes what it says it does.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use crate::common::document;
use hopcast_twin::results::Flow;

/// `app` to three receivers on a switch, each of which loses `loss` of what comes, over `norm` with `options`.
fn run(loss: &str, delay: &str, options: &str, app: &str) -> Flow {
    let mut document = document(&format!(
        "seed: 3
duration: 30 s
topology:
  nodes: [s, a, b, c]
  links: [{{ switch: [s, a, b, c], rate: 8 Mbit/s, delay: {delay}, loss: {loss} }}]
flows: [{{ from: s, to: [a, b, c], delivery: ip-multicast, over: {{ norm: {{ rate: 4 Mbit/s, {options} }} }}, app: {{ {app} }} }}]
"
    ));
    document.runs.remove(0).flows.remove(0)
}

const BULK: &str = "bulk: { bytes: 400 kB }";

#[test]
fn parity_ahead_of_requests_serves_receivers_that_do_not_ask() {
    // Each message is an object of one block, of 30 symbols.
    let messages = "messages: { size: 40 kB, every: 200 ms, stop: 20 s }";
    let of = |options: &str| run("5 %", "2 ms", &format!("reliable: off, {options}"), messages);
    let (without, some, much) = (of("proactive: none"), of("proactive: 4"), of("proactive: 16"));
    let share = |flow: &Flow| flow.figures.reliability.unwrap();
    assert!(share(&without) < share(&some) && share(&some) < share(&much), "{without:?} {some:?} {much:?}");
    assert_eq!(share(&much), 1.0, "of 46, more than 16 are lost once in 10^9 blocks");
    let repairs = |flow: &Flow| flow.counters["repair_packets_sent"];
    assert_eq!((repairs(&without), repairs(&some) * 4), (0, repairs(&much)));
}

#[test]
fn receivers_acknowledge_where_they_are_asked_to() {
    let acknowledged = |options: &str| {
        let flow = run("5 %", "2 ms", options, BULK);
        assert_eq!(flow.figures.reliability, Some(1.0));
        flow.counters.get("receivers_acknowledged").copied().unwrap_or_default()
    };
    assert_eq!((acknowledged("ack: on"), acknowledged("ack: off")), (3, 0));
}

#[test]
fn a_longer_back_off_takes_longer_and_costs_fewer_requests() {
    let of = |factor: u8| {
        let flow = run("20 %", "20 ms", &format!("backoff: {factor}, proactive: none"), BULK);
        assert_eq!(flow.figures.reliability, Some(1.0));
        (flow.figures.completed_s.unwrap(), flow.counters["nacks_sent"])
    };
    let (short, long) = (of(0), of(15));
    assert!(short.0 < long.0 && short.1 > long.1, "{short:?} {long:?}");
}

#[test]
fn a_sender_says_that_it_is_at_its_end_as_often_as_its_robust_factor() {
    let control = |robust: u16| {
        let flow = run("0 %", "2 ms", &format!("robust: {robust}"), BULK);
        flow.counters["control_packets_sent"]
    };
    let (few, many) = (control(2), control(20));
    assert!(many >= few + 10, "{few} {many}");
}

#[test]
fn a_small_send_buffer_slows_a_stream_down_on_a_long_path() {
    let seconds = |buffer: &str| {
        let flow = run("1 %", "100 ms", &format!("send-buffer: {buffer}"), "bulk: { bytes: 1 MB }");
        assert_eq!(flow.figures.reliability, Some(1.0), "{buffer}");
        flow.figures.completed_s.unwrap()
    };
    let (small, large) = (seconds("256 KiB"), seconds("16 MiB"));
    assert!(small > 1.5 * large, "{small} {large}");
}

#[test]
fn a_receiver_with_a_small_buffer_asks_again_for_what_it_dropped() {
    let bytes = |buffer: &str| {
        let flow = run("20 %", "50 ms", &format!("receive-buffer: {buffer}, block: 16"), BULK);
        assert_eq!(flow.figures.reliability, Some(1.0), "{buffer}: {:?} {:?}", flow.counters, flow.receivers);
        flow.figures.network_bytes.unwrap()
    };
    let (small, large) = (bytes("64 KiB"), bytes("16 MiB"));
    assert!(small > large, "{small} {large}");
}
