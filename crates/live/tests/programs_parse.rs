//! Output of programs is read as their measurement, and any other output is an error of one line.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use hopcast_core::{Bytes, Duration, Instant, Rate};
use hopcast_live::programs::{
    CommandLine, Ends, GroupMember, Measurement, Outputs, SenderLink, Task, commands, parse,
};
use hopcast_twin::scenario::model::{
    CopyProgram, FileCopy, GroupFile, GroupFileProgram, Load, PingOptions, Program, Socket, TestPicture,
};
use proptest::prelude::*;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));
const TCP: Socket = Socket::Tcp { congestion: Some("bbr") };

fn task(socket: Socket) -> Task<'static> {
    let second = |second| Instant::ZERO + Duration::from_secs(second);
    Task {
        flow: "f",
        ends: Ends { from: ADDRESS, to: ADDRESS, connect: ADDRESS, port: 10_000, member: None },
        receivers: &[],
        socket,
        start: second(1),
        stop: second(3),
        window: (second(1), second(3)),
        step: Duration::from_millis(500),
        dir: Path::new("run"),
    }
}

fn load(size: u64) -> Load {
    Load {
        rate: Some(Rate::from_bits_per_sec(5_000_000)),
        size: Some(Bytes::new(size)),
        parallel: 1,
        reverse: false,
        arguments: Vec::new(),
    }
}

fn reverse(size: u64) -> Load {
    Load { reverse: true, ..load(size) }
}

fn ping() -> PingOptions {
    PingOptions { size: Bytes::new(100), every: Duration::from_millis(100), arguments: Vec::new() }
}

fn picture() -> TestPicture {
    TestPicture {
        rate: Rate::from_bits_per_sec(300_000),
        width: 160,
        height: 90,
        fps: 10,
        gop: 10,
        deadline: Duration::from_millis(400),
        size: Bytes::new(1316),
    }
}

fn copy() -> FileCopy {
    FileCopy { contents: vec![7; 1000].into(), with: CopyProgram::Socat }
}

/// Outputs of programs whose client was started a second into the run.
fn outputs(client: &str, server: &str) -> Outputs {
    let [client, server] = [client, server].map(str::to_owned);
    Outputs { client, server, started: 1.0, ended: 4.0, ..Outputs::default() }
}

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("fixtures/programs/", $name))
    };
}

fn ffmpeg() -> Outputs {
    Outputs {
        client_errors: fixture!("ffmpeg-client.txt").to_owned(),
        server_errors: fixture!("ffmpeg-server.txt").to_owned(),
        more: vec![
            ("packets sent", fixture!("ffmpeg-packets-sent.txt").to_owned()),
            ("packets received", fixture!("ffmpeg-packets-received.txt").to_owned()),
            ("reference", fixture!("ffmpeg-reference.txt").to_owned()),
        ],
        started_wall: 1_795_303_579.734_385,
        ..outputs("", "")
    }
}

/// A program, its sockets and what it left behind.
fn recorded() -> Vec<(Program, Socket, Outputs)> {
    let both = |client: &str, server: &str| outputs(client, server);
    vec![
        (
            Program::Iperf3(load(1200)),
            TCP,
            both(fixture!("iperf3-tcp-client.json"), fixture!("iperf3-tcp-server.json")),
        ),
        (
            Program::Iperf3(load(1200)),
            Socket::Udp,
            both(fixture!("iperf3-udp-client.json"), fixture!("iperf3-udp-server.json")),
        ),
        (
            Program::Iperf2(load(1200)),
            TCP,
            both(fixture!("iperf2-tcp-client.txt"), fixture!("iperf2-tcp-server.txt")),
        ),
        (
            Program::Iperf2(load(1200)),
            Socket::Udp,
            both(fixture!("iperf2-udp-client.txt"), fixture!("iperf2-udp-server.txt")),
        ),
        (
            Program::Iperf2(reverse(1200)),
            Socket::Udp,
            both(fixture!("iperf2-udp-reverse-client.txt"), fixture!("iperf2-udp-reverse-server.txt")),
        ),
        (Program::Nuttcp(load(1200)), TCP, both(fixture!("nuttcp-tcp-client.txt"), "")),
        (Program::Nuttcp(load(1200)), Socket::Udp, both(fixture!("nuttcp-udp-client.txt"), "")),
        (
            Program::Ping(ping()),
            Socket::Icmp,
            Outputs { started_wall: 1_795_301_454.2, ..both(fixture!("ping-client.txt"), "") },
        ),
        (Program::Ffmpeg(picture()), Socket::Udp, ffmpeg()),
        (
            Program::GroupFile(group_file(GroupFileProgram::Uftp)),
            Socket::Udp,
            Outputs {
                more: vec![("received", "9000 true 101.5".to_owned())],
                started_wall: 100.0,
                ..both("", "")
            },
        ),
        (
            Program::Copy(copy()),
            TCP,
            Outputs {
                more: vec![("copied", "1000 true 100.5".to_owned())],
                started_wall: 100.0,
                ..both("", "")
            },
        ),
    ]
}

fn measured(number: usize) -> Measurement {
    let (program, socket, outputs) = recorded().swap_remove(number);
    parse(&program, &task(socket), &outputs).unwrap_or_else(|error| panic!("{error}"))
}

fn figures(number: usize) -> hopcast_twin::results::Figures {
    measured(number).figures(task(TCP).window)
}

#[test]
fn iperf3_over_tcp_says_what_its_server_received() {
    // 12,582,912 bytes in 2.0002 s.
    let goodput = figures(0).goodput_mbps.unwrap();
    assert!((goodput - 50.33).abs() < 0.02, "{goodput}");
    assert_eq!(measured(0).counters["retransmitted_segments"], 0);
    assert_eq!(figures(0).sent_units, 0, "a stream has no units");
}

#[test]
fn iperf3_over_udp_counts_datagrams_and_their_jitter() {
    let figures = figures(1);
    assert!((figures.goodput_mbps.unwrap() - 5.0).abs() < 0.02, "{figures:?}");
    assert_eq!((figures.sent_units, figures.delivered_units), (1042, 1042));
    assert!(figures.jitter_ms.is_some_and(|jitter| jitter > 0.0 && jitter < 1.0));
}

#[test]
fn iperf2_over_tcp_adds_what_its_connections_received() {
    // Both of them 9,568,316 bytes, in the first 1.505 s of the window of 2 s.
    let goodput = figures(2).goodput_mbps.unwrap();
    let expected = 2.0 * 9_568_316.0 * 8.0 / 2.0 / 1e6;
    assert!((goodput - expected).abs() < 0.01, "{goodput} for {expected}");
}

#[test]
fn iperf2_over_udp_has_a_distribution_of_latencies() {
    for number in [3, 4] {
        let figures = figures(number);
        let latency = figures.latency_ms.unwrap();
        assert!(latency.p50 > 0.0 && latency.p50 <= 0.1 && latency.max <= 0.2, "{latency:?}");
        assert!(figures.jitter_ms.is_some());
    }
    // The client counts 524 of 525 datagrams, and the server on the way back 523.
    assert_eq!((figures(3).sent_units, figures(3).delivered_units), (524, 524));
    assert_eq!((figures(4).sent_units, figures(4).delivered_units), (524, 523));
}

#[test]
fn nuttcp_says_at_the_client_what_arrived_and_what_did_not() {
    // 9 MiB in 1.5 s of 2 s.
    assert!((figures(5).goodput_mbps.unwrap() - 9.0 * 8.388_608 / 2.0).abs() < 0.01);
    assert_eq!((figures(6).sent_units, figures(6).delivered_units), (782, 782));
}

#[test]
fn each_reply_to_a_ping_is_a_round_trip() {
    let figures = figures(7);
    assert_eq!((figures.sent_units, figures.delivered_units, figures.reliability), (5, 5, Some(1.0)));
    let round_trip = figures.round_trip_ms.unwrap();
    assert!((round_trip.mean - 0.0672).abs() < 1e-6, "{round_trip:?}");
    assert_eq!((round_trip.p50, round_trip.max), (0.045, 0.165));
}

#[test]
fn pings_without_an_answer_are_lost() {
    let outputs = outputs(fixture!("ping-lost-client.txt"), "");
    let figures =
        parse(&Program::Ping(ping()), &task(Socket::Icmp), &outputs).unwrap().figures(task(TCP).window);
    assert_eq!((figures.sent_units, figures.delivered_units, figures.round_trip_ms), (10, 0, None));
}

/// Of 30 frames 8 % of the datagrams were lost.
#[test]
fn frames_are_whole_late_lost_or_not_to_be_decoded() {
    let figures = figures(8);
    let video = figures.video.unwrap();
    // The last ones were due after the window, which begins half a second before the first.
    assert_eq!(video.frames_sent, 15, "{video:?}");
    assert_eq!(video.frames_delivered + video.frames_lost, video.frames_sent);
    assert!(video.frames_lost > 0 && video.frames_undecodable > 0, "{video:?}");
    let decodable = video.frames_delivered - video.frames_late - video.frames_undecodable;
    assert_eq!(video.decodable_frame_ratio, Some(decodable as f64 / video.frames_sent as f64));
}

#[test]
fn all_frames_are_accounted_for_in_a_window_that_has_them_all() {
    let (program, socket, outputs) = recorded().swap_remove(8);
    let end = Instant::ZERO + Duration::from_secs(9);
    let measured = parse(&program, &Task { window: (Instant::ZERO, end), ..task(socket) }, &outputs).unwrap();
    let video = measured.video.unwrap();
    assert_eq!((video.frames_sent, video.frames_delivered, video.frames_lost), (30, 19, 11));
    assert_eq!(video.frames_undecodable + video.frames_late, 11);
    assert_eq!(measured.counters["frames_shown_damaged"], 19);
}

#[test]
fn a_copy_is_measured_from_its_start_to_the_last_byte() {
    let figures = figures(10);
    assert_eq!((figures.completed_s, figures.hash_ok), (Some(0.5), Some(true)));
    assert!((figures.goodput_mbps.unwrap() - 0.016).abs() < 1e-9, "{figures:?}");
}

#[test]
fn a_program_that_failed_says_why() {
    let outputs = outputs(fixture!("iperf3-refused-client.json"), "");
    let error = parse(&Program::Iperf3(load(1200)), &task(TCP), &outputs).unwrap_err().to_string();
    assert_eq!(error, "iperf3: no report of what arrived: unable to connect to server: Connection refused");
    for (program, socket, _) in recorded() {
        let outputs = Outputs { client_errors: "\nno such luck\n".to_owned(), ..Outputs::default() };
        let error = parse(&program, &task(socket), &outputs).unwrap_err().to_string();
        assert!(error.starts_with(program.name()) && error.ends_with(": no such luck"), "{error}");
    }
}

#[test]
fn the_series_has_the_bytes_of_each_step() {
    let series = measured(1).series(Duration::from_millis(500), 8);
    assert_eq!(series.len(), 8);
    assert!(series[..2].iter().all(|mbps| *mbps == 0.0), "{series:?}");
    assert!(series[2..6].iter().all(|mbps| (mbps - 5.0).abs() < 0.1), "{series:?}");
}

#[test]
fn what_a_flow_says_is_what_its_program_is_told() {
    let told = |program: &Program, socket| {
        let commands = commands(program, &task(socket));
        let line = |line: &hopcast_live::programs::CommandLine| {
            format!("{} {}", line.program, line.arguments.join(" "))
        };
        (commands.server.as_ref().map(line).unwrap_or_default(), line(&commands.client))
    };
    let (server, client) = told(&Program::Iperf3(Load { parallel: 2, ..reverse(1200) }), TCP);
    assert_eq!(server, "iperf3 -s -1 -B 10.9.0.2 -p 10000 -i 0.5 -J");
    assert_eq!(client, "iperf3 -c 10.9.0.2 -p 10000 -i 0.5 -J -t 2 -P 2 -R -b 2500000 -C bbr -l 1200");
    let (server, client) = told(&Program::Iperf2(load(1200)), Socket::Udp);
    assert_eq!(server, "iperf -s -B 10.9.0.2 -p 10000 -i 0.500 -e -f b -u --histograms=100u,100000");
    assert_eq!(
        client,
        "iperf -c 10.9.0.2 -p 10000 -i 0.500 -e -f b -t 2.000 -u --trip-times -b 5000000 -l 1200"
    );
    let (server, client) = told(&Program::Nuttcp(load(1200)), Socket::Udp);
    assert_eq!(server, "nuttcp -S -1 --nofork -4 -P 10000");
    assert_eq!(client, "nuttcp -t -4 -fparse -i0.5 -T2.0 -P10000 -p10001 -u -R5000 -l1200 10.9.0.2");
    let (_, client) = told(&Program::Ping(ping()), Socket::Icmp);
    assert_eq!(client, "ping -4 -n -D -i 0.100000 -s 100 -I 10.9.0.2 10.9.0.2");
    let (server, client) = told(&Program::Copy(copy()), TCP);
    assert_eq!(
        server,
        "socat -u TCP4-LISTEN:10000,bind=10.9.0.2,reuseaddr,setsockopt-string=6:13:bbr CREATE:run/f-received"
    );
    assert_eq!(client, "socat -u OPEN:run/f-sent,rdonly TCP4:10.9.0.2:10000,setsockopt-string=6:13:bbr");
}

/// A task whose receiver is a member of a group.
fn member_task(group: &str, interface: u32, source: Option<&str>) -> Task<'static> {
    let task = task(Socket::Udp);
    let to = group.parse().unwrap();
    let source = source.map(|source| source.parse().unwrap());
    let member = Some(GroupMember { interface, source, ..GroupMember::alone(ADDRESS) });
    Task { ends: Ends { to, connect: to, member, ..task.ends }, ..task }
}

#[test]
fn a_server_of_iperf2_joins_the_group_on_its_interface_and_the_client_sends_far() {
    let told = |task: &Task<'_>| {
        let commands = commands(&Program::Iperf2(load(1200)), task);
        (commands.server.unwrap().arguments.join(" "), commands.client.arguments.join(" "))
    };
    let (server, client) = told(&member_task("239.192.0.1", 2, None));
    assert!(server.starts_with("-s -B 239.192.0.1%eth2 -p 10000 ") && !server.contains("-H"), "{server}");
    assert!(client.starts_with("-c 239.192.0.1 -p 10000 ") && client.contains(" -T 255 "), "{client}");
    let (server, client) = told(&member_task("ff38::8000:1", 0, Some("fd00::1")));
    assert!(server.starts_with("-s -B ff38::8000:1%eth0 ") && server.ends_with(" -H fd00::1"), "{server}");
    assert!(
        client.starts_with("-c ff38::8000:1 ") && client.contains(" -V ") && !client.contains("-H"),
        "{client}"
    );
}

#[test]
fn members_have_figures_of_their_own_and_one_that_got_nothing_has_them_too() {
    let task = member_task("239.192.0.1", 0, None);
    let client = fixture!("iperf2-udp-client.txt");
    let listening = "Server listening on UDP port 10000 with pid 4627\n";
    let measured = [fixture!("iperf2-udp-server.txt"), listening]
        .map(|server| parse(&Program::Iperf2(load(1200)), &task, &outputs(client, server)).unwrap());
    let [one, none] = measured.each_ref().map(|measured| measured.figures(task.window));
    assert_eq!((one.sent_units, one.delivered_units), (none.sent_units, one.sent_units));
    assert_eq!((none.delivered_units, none.reliability, none.goodput_mbps), (0, Some(0.0), Some(0.0)));
    assert!(none.goodput_mbps.unwrap().is_sign_positive());
    let all = Measurement::together(&measured).figures(task.window);
    assert_eq!((all.sent_units, all.reliability), (2 * one.sent_units, Some(0.5)));
    assert!((all.goodput_mbps.unwrap() - one.goodput_mbps.unwrap() / 2.0).abs() < 1e-9, "{all:?}");
    assert_eq!((all.latency_ms, all.jitter_ms), (one.latency_ms, one.jitter_ms));
    // Without a word of the server, or of the client, nothing is known.
    for (client, server) in [(client, ""), ("", listening)] {
        assert!(parse(&Program::Iperf2(load(1200)), &task, &outputs(client, server)).is_err());
    }
}

fn group_file(with: GroupFileProgram) -> GroupFile {
    let arguments = vec!["more".to_owned()];
    GroupFile { with, bytes: Bytes::new(9000), rate: None, arguments }
}

/// The commands at a sender and at the second of two members, which hear the group on their third interface.
fn group_file_commands(with: GroupFileProgram) -> [String; 2] {
    let sender = SenderLink { interface: 1, rate: Some(Rate::from_bits_per_sec(1_474_000)), mtu: 1460 };
    let task = member_task("239.192.0.1", 0, None);
    let ends = [2, 3].map(|last| {
        let address = Ipv4Addr::new(10, 0, 0, last).into();
        let member = Some(GroupMember { interface: 2, source: None, address, sender });
        Ends { from: Ipv4Addr::new(10, 0, 0, 1).into(), member, ..task.ends }
    });
    let task = Task { ends: ends[1], receivers: &ends, ..task };
    let told = commands(&Program::GroupFile(group_file(with)), &task);
    // After the script that gives the interface an address.
    let words = |line: CommandLine| {
        assert_eq!((&*line.program, &*line.arguments[0]), ("sh", "-c"));
        line.arguments[2..].join(" ")
    };
    [words(told.server.unwrap()), words(told.client)]
}

#[test]
fn uftp_and_udpcast_are_told_the_members_the_interfaces_and_a_rate_that_counts_what_they_count() {
    let [member, sender] = group_file_commands(GroupFileProgram::Uftp);
    assert_eq!(
        member,
        "eth2 10.0.0.3 uftpd -d -q -p 10000 -M 239.192.0.1 -I eth2 -B 4194304 -U 0x0A000003 -D run/f-received-10.0.0.3"
    );
    // A packet of 1,460 bytes is 1,432 of UDP and a frame of 1,474.
    assert_eq!(
        sender,
        "eth1 10.0.0.1 uftp -R 1432 -b 1400 -p 10000 -M 239.192.0.1 -P 239.192.0.1 -I eth1 -B 4194304 -t 255 \
         -H 0x0A000002,0x0A000003 -S @LOG -T run/f-sent/file more"
    );
    let [member, sender] = group_file_commands(GroupFileProgram::Udpcast);
    assert_eq!(
        member,
        "eth2 10.0.0.3 udp-receiver --nokbd --no-progress --portbase 10000 --interface eth2 --mcast-rdv-address 239.192.0.1 \
         --file run/f-received-10.0.0.3/file"
    );
    assert_eq!(
        sender,
        "eth1 10.0.0.1 udp-sender --nokbd --no-progress --portbase 10000 --interface eth1 --mcast-rdv-address 239.192.0.1 \
         --mcast-data-address 239.192.0.1 --ttl 255 --blocksize 1400 --max-bitrate 1432000 --min-receivers 2 --min-wait 2 \
         --max-wait 5 --rexmit-hello-interval 100 --file run/f-sent/file more"
    );
}

#[test]
fn libnorms_member_is_told_the_same_rate_and_its_arguments_come_last() {
    let [member, sender] = group_file_commands(GroupFileProgram::Libnorm);
    assert!(member.contains("/libnorm-peer-") && sender.contains("/libnorm-peer-"), "{member} {sender}");
    assert!(
        member.ends_with(
            " role=receive group=239.192.0.1 port=10000 interface=eth2 id=167772163 seconds=4.000 \
             into=run/f-received-10.0.0.3 linger=3600"
        ),
        "{member}"
    );
    assert!(
        sender.contains(" role=send group=239.192.0.1 port=10000 interface=eth1 id=167772161 seconds=4.000 ")
            && sender.contains(" rate=1432000 segment=1400 ")
            && sender.ends_with(" file=run/f-sent/file more"),
        "{sender}"
    );
}

#[test]
fn openpgms_member_counts_packets_and_knows_the_end_by_the_length() {
    let [member, sender] = group_file_commands(GroupFileProgram::Openpgm);
    assert!(member.contains("/openpgm-peer-") && sender.contains("/openpgm-peer-"), "{member} {sender}");
    let common = |interface: &str, address: &str, id: &str| {
        format!(
            "group=239.192.0.1 udp=10000 interface={interface} address={address} id={id} mtu=1460 seconds=4.000 "
        )
    };
    assert!(
        member.ends_with(&format!(
            " role=receive {}into=run/f-received-10.0.0.3/file size=9000 linger=3600 repeat=1 repair=1",
            common("eth2", "10.0.0.3", "167772163")
        )),
        "{member}"
    );
    // A packet of 1,460 bytes is a frame of 1,474.
    assert!(
        sender.ends_with(&format!(
            " role=send {}rate=1460000 linger=10 file=run/f-sent/file more",
            common("eth1", "10.0.0.1", "167772161")
        )),
        "{sender}"
    );
}

#[test]
fn the_sender_of_jgroups_waits_for_all_members_and_its_messages_fill_packets() {
    let [member, sender] = group_file_commands(GroupFileProgram::Jgroups);
    for line in [&member, &sender] {
        assert!(line.contains(" java ") && line.contains("jgroups-2.12.0.Final.jar:"), "{line}");
    }
    assert!(
        member.ends_with(
            " Peer role=receive group=239.192.0.1 port=10000 interface=eth2 address=10.0.0.3 seconds=32.000 \
             into=run/f-received-10.0.0.3/file linger=3600"
        ),
        "{member}"
    );
    assert!(
        sender.ends_with(
            " Peer role=send group=239.192.0.1 port=10000 interface=eth1 address=10.0.0.1 seconds=32.000 rate=1432000 \
             message=1432 members=2 file=run/f-sent/file more"
        ),
        "{sender}"
    );
}

#[test]
fn a_file_to_a_group_lasts_from_the_first_frame_of_data_to_the_last_change_at_the_last_member() {
    let parsed = |text: &str, data_began| {
        let more = vec![("received", text.to_owned())];
        let outputs = Outputs { more, started_wall: 100.0, data_began, ..outputs("", "said") };
        parse(&Program::GroupFile(group_file(GroupFileProgram::Uftp)), &task(Socket::Udp), &outputs)
    };
    // The client was started a second into the run, and the data began at its third.
    let near = parsed("9000 true 104.5", Some(3.0)).unwrap();
    let far = parsed("9000 true 105", Some(3.0)).unwrap();
    let damaged = parsed("9000 false 104", Some(3.0)).unwrap();
    assert_eq!((near.completed_s, far.completed_s, damaged.completed_s), (Some(2.5), Some(3.0), None));
    let all = Measurement::together(&[near.clone(), far]);
    assert_eq!((all.completed_s, all.hash_ok, all.lasted), (Some(3.0), Some(true), Some((3.0, 6.0))));
    assert_eq!(all.units, Some((2, 2)));
    let all = Measurement::together(&[near, damaged]);
    assert_eq!((all.completed_s, all.hash_ok, all.units), (None, Some(false), Some((2, 1))));
    // Where no link saw them, from the start of the sender.
    assert_eq!(parsed("9000 true 104.5", None).unwrap().completed_s, Some(4.5));
    for text in ["", "9000", "9000 true", "9000 true soon"] {
        let error = parsed(text, None).unwrap_err().to_string();
        assert_eq!(error, "uftp: nothing arrived: said", "{text}");
    }
}

/// An output that is cut, has something put into it, or is said by somebody else.
fn mangled() -> impl Strategy<Value = (usize, String, f64, f64)> {
    (0..recorded().len(), "\\PC{0,60}|[-0-9.:,=x \n\\[\\]]{0,60}", 0.0..1.0, 0.0..1.0)
}

fn mangle(text: &str, put: &str, from: f64, to: f64) -> String {
    let place = |share: f64| {
        let wanted = (share * text.len() as f64) as usize;
        (0..=wanted).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0)
    };
    format!("{}{put}{}", &text[..place(from)], &text[place(to)..])
}

proptest! {
    #[test]
    fn no_output_makes_a_parser_panic((number, put, from, to) in mangled()) {
        let (program, socket, outputs) = recorded().swap_remove(number);
        let mangled = |text: &String| mangle(text, &put, from, to);
        let outputs = Outputs {
            client: mangled(&outputs.client),
            client_errors: mangled(&outputs.client_errors),
            server: mangled(&outputs.server),
            server_errors: mangled(&outputs.server_errors),
            more: outputs.more.iter().map(|(name, text)| (*name, mangled(text))).collect(),
            ..outputs
        };
        match parse(&program, &task(socket), &outputs) {
            Ok(measured) => {
                let figures = measured.figures(task(socket).window);
                prop_assert!(figures.delivered_units <= figures.sent_units);
                prop_assert!(figures.goodput_mbps.is_none_or(|goodput| goodput >= 0.0));
                prop_assert_eq!(measured.series(Duration::from_millis(100), 40).len(), 40);
                measured.curves("f");
            }
            Err(error) => {
                let error = error.to_string();
                prop_assert!(!error.contains('\n') && error.len() < 500, "{}", error);
            }
        }
    }
}
