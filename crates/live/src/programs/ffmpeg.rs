//! ffmpeg: a test picture is coded, sent as an MPEG transport stream, and shown at the receiver.
//!
//! Sender and receiver keep recordings, which are compared frame by frame after the run, by time stamps: a frame has
//! arrived if the bytes of its picture have, it is in time if it was shown before its deadline, and it could be decoded
//! if it looks as in the sender's own recording.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hopcast_twin::results::Video;
use hopcast_twin::scenario::model::TestPicture;

use super::command::{CommandLine, Commands, ListenPort, Outputs, Task};
use super::copy::{bracketed, quoted, socat_connect, socat_listen, socat_options};
use super::error::Missing;
use super::measurement::{Interval, Measurement, Samples};

/// Rate of time stamps in MPEG transport streams, per second (ISO/IEC 13818-1, 2.4.3.7).
const CLOCK_RATE: u64 = 90_000;
/// Options that read a stream without delay: a frame ends with its last byte, not with the first byte of the next.
const LOW_DELAY_INPUT: &str =
    "-copyts -fflags +noparse+nofillin -flags low_delay -probesize 5000 -analyzeduration 0 -f mpegts";
/// Options against questions and progress on standard error.
const QUIET: &str = "-nostdin -hide_banner -loglevel info -nostats";
/// Filters that print a frame's time stamp and checksum, and then the machine's time in microseconds.
const SHOWN: &str = "showinfo,settb=1/1000000,setpts=RTCTIME,showinfo=checksum=0";
const REFERENCE: &str = "reference";
const PACKETS_SENT: &str = "packets sent";
const PACKETS_RECEIVED: &str = "packets received";

/// The sender's recording.
pub(super) fn sent(task: &Task<'_>) -> PathBuf {
    task.file("sent.ts")
}

/// The receiver's recording.
pub(super) fn received(task: &Task<'_>) -> PathBuf {
    task.file("received.ts")
}

pub(super) fn commands(picture: &TestPicture, task: &Task<'_>) -> Commands {
    let family = if task.ends.ipv6() { 6 } else { 4 };
    let (source, listens_on) = match task.is_udp() {
        true => {
            let (port, address) = (task.ends.port, bracketed(task.ends.to));
            (format!("UDP{family}-RECV:{port},bind={address}"), ListenPort::Udp(port))
        }
        false => (format!("{}{}", socat_listen(task), socat_options(task)), ListenPort::Tcp(task.ends.port)),
    };
    let server = format!(
        "socat -u -b 65536 {source} STDOUT | tee {} | ffmpeg {QUIET} {LOW_DELAY_INPUT} -i pipe:0 -map 0:v -vf {SHOWN} -fps_mode \
         passthrough -f null -",
        quoted(&received(task))
    );
    let mut server = CommandLine::new("sh", ["-c", &server]).listening_on(listens_on);
    // Over TCP the receiver ends with the stream.
    server.ends_itself = !task.is_udp();
    let coding = coding(picture, task);
    let options = "f=mpegts:omit_video_pes_length=0";
    let file = escaped(&sent(task));
    let client = if task.is_udp() {
        let size = picture.size;
        let udp =
            format!("udp://{}:{}?pkt_size={}", bracketed(task.ends.connect), task.ends.port, size.get());
        let tee = format!("[{options}]{udp}|[{options}]{file}");
        let shown = clock_words();
        CommandLine::new("ffmpeg", coding.split_whitespace()).and([tee]).and(shown.split_whitespace())
    } else {
        let tee = format!("[{options}]pipe:1|[{options}]{file}");
        let words = coding.split_whitespace().chain([&*tee]).chain(clock_words().split_whitespace());
        let words: Vec<String> = words.map(|word| quoted(Path::new(word))).collect();
        let (target, options) = (socat_connect(task), socat_options(task));
        let script = format!("ffmpeg {} | socat -u - {target}{options}", words.join(" "));
        CommandLine::new("sh", ["-c", &script])
    };
    Commands { server: Some(server), client: client.ending_itself() }
}

/// Options that make and code the picture.
fn coding(picture: &TestPicture, task: &Task<'_>) -> String {
    let TestPicture { rate, width, height, fps, gop, .. } = picture;
    let (rate, half) = (rate.bits_per_sec(), (rate.bits_per_sec() / 2).max(1));
    // The picture shows its number and time, for people.
    format!(
        "{QUIET} -re -f lavfi -t {:.3} -i testsrc2=size={width}x{height}:rate={fps} -filter_complex \
         [0:v]split[v][t];[t]settb=1/1000000,setpts=RTCTIME,showinfo=checksum=0[w] -map [v] -c:v libx264 -preset veryfast -tune \
         zerolatency -pix_fmt yuv420p -b:v {rate} -maxrate {rate} -bufsize {half} -g {gop} -bf 0 -f tee",
        task.seconds()
    )
}

/// Options of the sender's second output, which only prints when each frame was made.
const fn clock_words() -> &'static str {
    "-map [w] -fps_mode passthrough -f null -"
}

/// A file name, escaped for ffmpeg's tee muxer.
fn escaped(path: &Path) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    let text = path.display().to_string();
    text.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

/// The contents of both recordings, read after the run.
pub(super) fn inspect(task: &Task<'_>) -> Vec<(&'static str, String)> {
    let packets = ["-c", "copy", "-copyinkf", "-f", "framecrc", "-"];
    let pictures = ["-vf", "showinfo", "-fps_mode", "passthrough", "-f", "null", "-"];
    let (sent, received) = (sent(task), received(task));
    vec![
        (PACKETS_SENT, look(&sent, &packets)),
        (PACKETS_RECEIVED, look(&received, &packets)),
        (REFERENCE, look(&sent, &pictures)),
    ]
}

/// The output of ffmpeg for a recording; empty if there is none.
fn look(path: &Path, output: &[&str]) -> String {
    let mut command = Command::new("ffmpeg");
    command.args(QUIET.split_whitespace()).args(LOW_DELAY_INPUT.split_whitespace()).arg("-i").arg(path);
    command.args(["-map", "0:v"]).args(output).stdin(Stdio::null());
    let Ok(done) = command.output() else { return String::new() };
    let said = if done.stdout.is_empty() { done.stderr } else { done.stdout };
    String::from_utf8_lossy(&said).into_owned()
}

pub(super) fn parse(
    picture: &TestPicture,
    task: &Task<'_>,
    outputs: &Outputs,
) -> Result<Measurement, Missing> {
    let number = |stamp: u64| (stamp as f64 * f64::from(picture.fps) / CLOCK_RATE as f64).round() as u64;
    let period = 1.0 / f64::from(picture.fps);
    let sent = packets(outputs.find(PACKETS_SENT), number);
    // The time at which the first frame was due: the sender may have been late with any of them.
    let made = shown(&outputs.client_errors);
    let due = made.iter().filter_map(|frame| Some((frame.place, frame.wall?)));
    let first = due.map(|(place, wall)| wall - place as f64 * period).min_by(f64::total_cmp);
    let (Some(first), false) = (first, sent.is_empty()) else {
        return Err(outputs.lacks("nothing was sent"));
    };
    let came = packets(outputs.find(PACKETS_RECEIVED), number);
    let reference: BTreeMap<u64, u32> = sums(&shown(outputs.find(REFERENCE)), number).collect();
    let at_receiver = shown(&outputs.server_errors);
    let seen: BTreeMap<u64, u32> = sums(&at_receiver, number).collect();
    let arrivals = arrivals(&at_receiver, number);

    let (from, to) = task.window_seconds();
    let in_run = |wall: f64| wall - outputs.started_wall + outputs.started;
    let mut video = Video::default();
    let (mut received, mut latencies, mut decodable, mut damaged) = (Vec::new(), Vec::new(), 0, 0);
    for (&frame, packet) in &sent {
        let due = first + frame as f64 * period;
        let whole = came.get(&frame).is_some_and(|came| came == packet);
        let arrival = arrivals.get(&frame).copied();
        if whole {
            let at = in_run(arrival.unwrap_or(due));
            received.push(Interval { from: at, to: at, bytes: packet.bytes as f64 });
        }
        if !(from..to).contains(&in_run(due)) {
            continue;
        }
        let right = seen.get(&frame).is_some_and(|sum| reference.get(&frame) == Some(sum));
        let late = arrival.is_some_and(|at| at - due > picture.deadline.as_secs_f64());
        video.frames_sent += 1;
        damaged += u64::from(seen.contains_key(&frame) && !right);
        if !whole {
            video.frames_lost += 1;
            continue;
        }
        video.frames_delivered += 1;
        latencies.extend(arrival.map(|at| ((at - due).max(0.0) * 1e3, 1)));
        match (late, right) {
            (true, _) => video.frames_late += 1,
            (false, false) => video.frames_undecodable += 1,
            (false, true) => decodable += 1,
        }
    }
    let share = |count: u64| (video.frames_sent > 0).then(|| count as f64 / video.frames_sent as f64);
    video.in_time_ratio = share(video.frames_delivered - video.frames_late);
    video.decodable_frame_ratio = share(decodable);
    Ok(Measurement {
        received,
        units: Some((video.frames_sent, video.frames_delivered)),
        latency: Samples::new(latencies),
        video: Some(video),
        counters: BTreeMap::from([("frames_shown_damaged".to_owned(), damaged)]),
        ..Measurement::default()
    })
}

/// A coded frame as it was sent.
#[derive(PartialEq, Eq)]
struct Packet {
    bytes: u64,
    sum: u32,
}

/// `0,     259200,     259200,     3600,    19069, 0x090dfad4, …`: stream, two time stamps, length, size, sum.
fn packets(text: &str, number: impl Fn(u64) -> u64) -> BTreeMap<u64, Packet> {
    let packet = |line: &str| -> Option<(u64, Packet)> {
        let mut fields = line.split(',').map(str::trim);
        let stamp = fields.nth(2)?.parse().ok()?;
        let bytes = fields.nth(1)?.parse().ok()?;
        let sum = u32::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
        Some((number(stamp), Packet { bytes, sum }))
    };
    // A frame that arrives twice arrived with the first copy.
    let found: Vec<_> = text.lines().filter_map(packet).collect();
    found.into_iter().rev().collect()
}

/// A frame as the filter `showinfo` describes it.
struct Shown {
    /// Its number, from 0.
    place: u64,
    /// Its time stamp, unless it is the machine's time.
    stamp: Option<u64>,
    /// The machine's time, in seconds.
    wall: Option<f64>,
    sum: Option<u32>,
}

/// Maximum time stamp of a recording, in microseconds: larger ones are machine times in microseconds, since no
/// recording lasts eleven days.
const MAX_STAMP: u64 = 1_000_000_000_000;

/// `[Parsed_showinfo_0 @ 0x557eef282500] n:   1 pts:   3600 pts_time:0.04 … checksum:5480B119 …`.
fn shown(text: &str) -> Vec<Shown> {
    let frame = |line: &str| -> Option<Shown> {
        let (_, line) = line.split_once("showinfo")?;
        let place = value(line, "] n:")?.parse().ok()?;
        let stamp: u64 = value(line, " pts:")?.parse().ok()?;
        let is_wall = stamp >= MAX_STAMP;
        let sum = value(line, " checksum:").and_then(|text| u32::from_str_radix(text, 16).ok());
        let wall = is_wall.then_some(stamp as f64 / 1e6);
        Some(Shown { place, stamp: (!is_wall).then_some(stamp), wall, sum })
    };
    text.lines().filter_map(frame).collect()
}

fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(key)?;
    rest.split_whitespace().next()
}

/// The checksum of each frame.
fn sums(frames: &[Shown], number: impl Fn(u64) -> u64) -> impl Iterator<Item = (u64, u32)> {
    frames.iter().filter_map(move |frame| Some((number(frame.stamp?), frame.sum?)))
}

/// The time at which each frame was shown; the two lines of a frame have one number.
fn arrivals(frames: &[Shown], number: impl Fn(u64) -> u64) -> BTreeMap<u64, f64> {
    let walls: BTreeMap<u64, f64> =
        frames.iter().filter_map(|frame| Some((frame.place, frame.wall?))).collect();
    let stamped = frames.iter().filter_map(|frame| Some((number(frame.stamp?), *walls.get(&frame.place)?)));
    stamped.collect()
}
