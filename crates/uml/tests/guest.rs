//! The guest itself: its ports, its scripts, and its end.

#![allow(clippy::disallowed_methods)] // The guest keeps its own time.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use hopcast_node::testing::{Requirement, require};
use hopcast_uml::{Guest, kernel};

/// Set for the process that is killed.
const TO_BE_KILLED: &str = "HOPCAST_UML_TO_BE_KILLED";
const PATIENCE: Duration = Duration::from_secs(10);

fn possible() -> bool {
    require(&[Requirement::File("uml", &kernel())])
}

/// A broadcast of 1514 bytes, with a number.
fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.resize(1514, 7);
    frame
}

/// Whether a process ends within this time, be it that nobody has asked how.
fn has_ended(process: u32, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z") {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn frames_come_and_go_by_each_port_in_order() {
    if !possible() {
        return;
    }
    let mut guest = Guest::boot(3);
    guest.sh("for port in 0 1 2; do
            ip link set vec$port up
        done
        modprobe act_mirred; modprobe cls_matchall; modprobe sch_ingress
        for port in 0 1; do
            tc qdisc add dev vec$port ingress
            tc filter add dev vec$port ingress matchall action mirred egress redirect dev vec2
        done");
    for number in 0..1000 {
        guest.send((number % 2) as usize, &frame(number));
        assert_eq!(guest.receive_any(PATIENCE), Some((2, frame(number))));
    }
    // More at once than any queue of the guest's driver holds, from both.
    for number in 0..200 {
        guest.send((number % 2) as usize, &frame(number));
    }
    for number in 0..200 {
        assert_eq!(guest.receive(2, PATIENCE), Some(frame(number)));
    }
    assert_eq!(guest.receive(0, Duration::from_millis(20)), None);
}

#[test]
fn scripts_give_what_they_write_and_how_they_end() {
    if !possible() {
        return;
    }
    let mut guest = Guest::boot(0);
    assert_eq!(guest.sh("uname -s"), "Linux\n");
    assert_eq!(guest.sh("seq 100000").lines().count(), 100_000);
    assert_eq!(
        guest.try_sh("echo this is lost; echo this is not >&2; exit 3"),
        Err("status 3: this is not\n".to_owned())
    );
    // A script gets no line of the next one.
    assert_eq!(guest.sh("cat; read line || echo $?"), "1\n");
    assert_eq!(guest.sh("ip -br link"), "lo               DOWN           00:00:00:00:00:00 <LOOPBACK> \n");
}

#[test]
fn a_guest_ends_with_the_test_that_fails_or_is_killed() {
    if !possible() {
        return;
    }
    if std::env::var_os(TO_BE_KILLED).is_some() {
        let guest = Guest::boot(1);
        println!("\nguest {}", guest.process());
        thread::sleep(6 * PATIENCE);
        return;
    }
    let (sender, pids) = mpsc::channel();
    let failing = thread::spawn(move || {
        let guest = Guest::boot(1);
        sender.send(guest.process()).unwrap();
        panic!("the panic that this test is about");
    });
    assert!(failing.join().is_err());
    assert!(has_ended(pids.recv().unwrap(), PATIENCE));

    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["a_guest_ends_with_the_test_that_fails_or_is_killed", "--exact", "--nocapture"]);
    let mut killed = command.env(TO_BE_KILLED, "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines().map(Result::unwrap);
    let process = lines.find_map(|line| line.strip_prefix("guest ").map(|pid| pid.parse().unwrap())).unwrap();
    assert!(!has_ended(process, Duration::ZERO));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(has_ended(process, PATIENCE));
}
