//! A file to all members of a group: by members of NORM on libnorm, of PGM on OpenPGM and of a group of JGroups, by
//! uftp, and by udpcast.
//!
//! Each sends and receives at one interface, by sockets that it binds to the interface's own address. All are told the
//! same rate of frames, and packets of the same length. A member has the file from the moment in which its file was
//! last changed, if that is the whole of it; the transfer begins with the first frame of data, after the programs have
//! found each other.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hopcast_core::Seed;
use hopcast_stack::network::interface_name;
use hopcast_twin::scenario::model::{ETHERNET_HEADER, GroupFile, GroupFileProgram, Signal};

use super::command::{CommandLine, Commands, GroupMember, ListenPort, Outputs, Task};
use super::error::{Error, Missing};
use super::measurement::{Interval, Measurement};
use super::{built_program, jgroups, libnorm, openpgm};

/// Name of the result of [`inspect`].
const RESULT: &str = "received";
/// Name of the file, at the sender and at each member.
pub(super) const FILE: &str = "file";
/// Hop limit of what is sent to a group: the maximum, as of hosts in virtual time.
const HOP_LIMIT: &str = "255";
/// IPv4's and UDP's headers (RFC 791, RFC 768), in bytes.
pub(super) const IP_AND_UDP: u64 = 20 + 8;
/// Socket buffers of uftp, in bytes. Chosen: its default of 256 KiB loses datagrams where a machine stands still for a
/// moment.
const UFTP_BUFFER: &str = "4194304";
/// Gives an interface, `$0`, the node's address, `$1`, if it has none, and runs the rest: uftp and udpcast find
/// interfaces by addresses, and those of nodes are mostly on none.
const WITH_ADDRESS: &str = "ip -4 -o address show dev \"$0\" | grep -q \" $1/\" || \
                            ip address add \"$1/32\" dev \"$0\" noprefixroute; shift; exec \"$@\"";

/// The addresses and the rate by which one end calls its program.
pub(super) struct Call<'t> {
    pub(super) task: &'t Task<'t>,
    pub(super) group: IpAddr,
    pub(super) port: String,
    pub(super) interface: String,
    pub(super) address: IpAddr,
    /// Maximum length of a packet to the group.
    pub(super) mtu: u32,
}

pub(super) fn commands(file: &GroupFile, task: &Task<'_>) -> Commands {
    // A group alone has such a flow.
    let member = task.ends.member.unwrap_or_else(|| GroupMember::alone(task.ends.to));
    let call = |interface: u32, address: IpAddr| Call {
        task,
        group: task.ends.to,
        port: task.ends.port.to_string(),
        interface: interface_name(interface),
        address,
        mtu: member.sender.mtu,
    };
    let sender = call(member.sender.interface, task.ends.from);
    let receiver = call(member.interface, member.address);
    let (server, client) = match file.with {
        GroupFileProgram::Libnorm => (libnorm::receiver(&receiver), libnorm::sender(file, &member, &sender)),
        GroupFileProgram::Openpgm => {
            (openpgm::receiver(file, &receiver), openpgm::sender(file, &member, &sender))
        }
        GroupFileProgram::Jgroups => (jgroups::receiver(&receiver), jgroups::sender(file, &member, &sender)),
        GroupFileProgram::Uftp => (uftp_receiver(&receiver), uftp_sender(file, &member, &sender)),
        GroupFileProgram::Udpcast => (udpcast_receiver(&receiver), udpcast_sender(file, &member, &sender)),
    };
    let client = client.and(file.arguments.iter().cloned()).ending_itself();
    Commands { server: Some(receiver.with_address(server)), client: sender.with_address(client) }
}

fn uftp_receiver(call: &Call<'_>) -> CommandLine {
    let into = path(&call.received());
    let group = call.group.to_string();
    let line = CommandLine::new("uftpd", ["-d", "-q", "-p", &call.port, "-M", &group, "-I", &call.interface])
        .and(["-B", UFTP_BUFFER, "-U", &uftp_id(call.address), "-D", &into])
        .listening_on(call.udp());
    CommandLine { stop_with: Signal::Term, ..line }
}

fn uftp_sender(file: &GroupFile, member: &GroupMember, call: &Call<'_>) -> CommandLine {
    let kbit = (member.sender.program_rate(file) / 1000).max(1).to_string();
    let (group, payload) = (call.group.to_string(), member.sender.payload().to_string());
    let members: Vec<String> = call.task.members().map(|member| uftp_id(member.address)).collect();
    CommandLine::new("uftp", ["-R", &kbit, "-b", &payload, "-p", &call.port, "-M", &group, "-P", &group])
        .and(["-I", &call.interface, "-B", UFTP_BUFFER, "-t", HOP_LIMIT, "-H", &members.join(",")])
        .and(["-S", "@LOG", "-T", &path(&call.sent())])
}

/// The identifier of a member for uftp.
fn uftp_id(address: IpAddr) -> String {
    format!("0x{:08X}", number(address))
}

fn udpcast_receiver(call: &Call<'_>) -> CommandLine {
    let into = path(&call.received().join(FILE));
    call.udpcast("udp-receiver").and(["--file", &into]).listening_on(call.udp()).ending_itself()
}

fn udpcast_sender(file: &GroupFile, member: &GroupMember, call: &Call<'_>) -> CommandLine {
    let (rate, payload) = (member.sender.program_rate(file), member.sender.payload());
    let group = call.group.to_string();
    call.udpcast("udp-sender")
        .and(["--mcast-data-address", &group, "--ttl", HOP_LIMIT])
        .and(["--blocksize", &payload.to_string(), "--max-bitrate", &rate.to_string()])
        // Members that have missed the sender's answer ask again when they hear its next call, before it begins.
        .and(["--min-receivers", &call.task.members().count().to_string()])
        .and(["--min-wait", "2", "--max-wait", "5", "--rexmit-hello-interval", "100"])
        .and(["--file", &path(&call.sent())])
}

impl Call<'_> {
    pub(super) fn udp(&self) -> ListenPort {
        ListenPort::Udp(self.task.ends.port)
    }

    /// The file that is sent.
    pub(super) fn sent(&self) -> PathBuf {
        sent(self.task).join(FILE)
    }

    /// Directory of the file that this member receives.
    pub(super) fn received(&self) -> PathBuf {
        received(self.task, self.address)
    }

    fn udpcast(&self, program: &str) -> CommandLine {
        let group = self.group.to_string();
        CommandLine::new(program, ["--nokbd", "--no-progress", "--portbase", &self.port]).and([
            "--interface",
            &self.interface,
            "--mcast-rdv-address",
            &group,
        ])
    }

    /// The command on an interface with the node's address.
    fn with_address(&self, line: CommandLine) -> CommandLine {
        let words = ["-c", WITH_ADDRESS, &self.interface].map(str::to_owned);
        let words = words.into_iter().chain([self.address.to_string(), line.program.clone()]);
        let arguments = words.chain(line.arguments).collect();
        CommandLine { program: "sh".to_owned(), arguments, ..line }
    }
}

impl Task<'_> {
    fn members(&self) -> impl Iterator<Item = GroupMember> {
        self.receivers.iter().filter_map(|ends| ends.member)
    }
}

impl super::command::SenderLink {
    /// Bytes of the file in a packet that fits the link.
    pub(super) fn payload(&self) -> u64 {
        u64::from(self.mtu).saturating_sub(IP_AND_UDP + GroupFile::HEADERS).max(1)
    }

    /// The rate in bit/s that a program is told, which counts what UDP carries: with its lower headers, the frames have
    /// the rate of the flow.
    pub(super) fn program_rate(&self, file: &GroupFile) -> u64 {
        self.rate_of(file, u64::from(self.mtu).saturating_sub(IP_AND_UDP))
    }

    /// The same for a program that counts packets of IP.
    pub(super) fn packet_rate(&self, file: &GroupFile) -> u64 {
        self.rate_of(file, self.mtu.into())
    }

    /// The rate at which `counted` bytes of each full frame are sent.
    fn rate_of(&self, file: &GroupFile, counted: u64) -> u64 {
        let rate = file.rate.or(self.rate).map_or(0, |rate| rate.bits_per_sec());
        let frame = u128::from(self.mtu) + u128::from(ETHERNET_HEADER);
        u64::try_from(u128::from(rate) * u128::from(counted) / frame).unwrap_or(u64::MAX).max(1)
    }
}

/// An IPv4 address as a number, by which libnorm, OpenPGM and uftp know a member.
pub(super) fn number(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        // A scenario with such a flow is refused.
        IpAddr::V6(_) => 0,
    }
}

pub(super) fn path(path: &Path) -> String {
    path.display().to_string()
}

/// Directory of the sender's file.
fn sent(task: &Task<'_>) -> PathBuf {
    task.file("sent")
}

/// Directory of a member's file.
fn received(task: &Task<'_>, member: IpAddr) -> PathBuf {
    task.file(&format!("received-{member}"))
}

/// Writes the file that the sender sends, and makes the directories of the members. Builds the program if it is
/// one of ours.
pub(super) fn prepare(file: &GroupFile, task: &Task<'_>) -> Result<(), Error> {
    if let Some(program) = built_program(file.with) {
        program.build()?;
    }
    let of_members = task.members().map(|member| received(task, member.address));
    for directory in of_members.chain([sent(task)]) {
        fs::create_dir_all(&directory).map_err(Error::file(directory))?;
    }
    let path = sent(task).join(FILE);
    write_random(&path, file.bytes.get()).map_err(Error::file(path))
}

/// Writes bytes of which no two parts are alike, so that one that is in another's place is found.
fn write_random(path: &Path, mut bytes: u64) -> std::io::Result<()> {
    let mut random = Seed::new(1, 0).stream(&["group file"], 0);
    let mut out = std::io::BufWriter::new(File::create(path)?);
    while bytes > 0 {
        let word = random.bits().to_le_bytes();
        let length = bytes.min(word.len() as u64);
        out.write_all(&word[..length as usize])?;
        bytes -= length;
    }
    out.flush()
}

/// Length of the file that the member of `task` received, whether it equals the sent one, and the time of its last
/// change. Removes it.
pub(super) fn inspect(task: &Task<'_>) -> (&'static str, String) {
    let directory = task.ends.member.map(|member| received(task, member.address)).unwrap_or_default();
    let found = File::open(directory.join(FILE)).and_then(|file| {
        let about = file.metadata()?;
        let original = File::open(sent(task).join(FILE))?;
        let same = about.len() == original.metadata()?.len() && same(file, original)?;
        // uftp gives a file the times of the original; that of its status is when it did so, at the end.
        let changed = about.ctime() as f64 + about.ctime_nsec() as f64 / 1e9;
        Ok(format!("{} {same} {changed}", about.len()))
    });
    // A file that never began has left nothing.
    let _ = fs::remove_dir_all(directory);
    (RESULT, found.unwrap_or_default())
}

/// Removes the sender's file.
pub(super) fn clean_up(task: &Task<'_>) {
    // It may never have been made.
    let _ = fs::remove_dir_all(sent(task));
}

/// Whether two files of one length have the same contents.
fn same(mut one: File, mut other: File) -> std::io::Result<bool> {
    let mut buffers = [vec![0; 1 << 16], vec![0; 1 << 16]];
    loop {
        let read = one.read(&mut buffers[0])?;
        if read == 0 {
            return Ok(true);
        }
        other.read_exact(&mut buffers[1][..read])?;
        if buffers[0][..read] != buffers[1][..read] {
            return Ok(false);
        }
    }
}

pub(super) fn parse(outputs: &Outputs) -> Result<Measurement, Missing> {
    let mut words = outputs.find(RESULT).split_whitespace();
    let (length, same, changed) = (words.next(), words.next(), words.next());
    let length = length.and_then(|text| text.parse::<u64>().ok());
    let changed = changed.and_then(|text| text.parse::<f64>().ok()).filter(|time| time.is_finite());
    let (Some(length), Some(same), Some(changed)) = (length, same, changed) else {
        return Err(outputs.lacks("nothing arrived"));
    };
    let whole = same == "true";
    let from = outputs.data_began.unwrap_or(outputs.started);
    let to = (outputs.started + changed - outputs.started_wall).max(from);
    Ok(Measurement {
        received: vec![Interval { from, to, bytes: length as f64 }],
        completed_s: whole.then_some(to - from),
        hash_ok: Some(whole),
        // The file is the one unit.
        units: Some((1, u64::from(whole))),
        lasted: Some((from, to)),
        ..Measurement::default()
    })
}
