//! Command lines, and the sockets by which programs are known to be ready.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use hopcast_core::{Duration, Instant, Rate};
use hopcast_stack::network::interface_name;
use hopcast_stack::transport::{ProgramCommand, ProgramEnds, ReadyAt};
use hopcast_twin::scenario::model::{Signal, Socket};

use super::error::Missing;

/// A program with its arguments and environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The program, by its name in the PATH.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Additional environment variables.
    pub environment: Vec<(String, String)>,
    /// The port that must be open before a client can connect; `None` if there is no client.
    pub listens_on: Option<ListenPort>,
    /// Whether it ends by itself when it is done; otherwise it is ended by a signal.
    pub ends_itself: bool,
    /// The first signal that ends it.
    pub stop_with: Signal,
}

/// A port on which a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum ListenPort {
    Tcp(u16),
    Udp(u16),
}

impl CommandLine {
    /// `program` with `arguments`, which is ended by a signal.
    pub fn new<A: Into<String>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    pub(super) fn and<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(super) fn and_if<A: Into<String>>(
        self,
        condition: bool,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        if condition { self.and(arguments) } else { self }
    }

    pub(super) fn ending_itself(mut self) -> Self {
        self.ends_itself = true;
        self
    }

    /// Sets the congestion control of the whole node before it starts: for programs that have no option for it.
    pub(super) fn on_node_with(self, congestion: Option<&str>) -> Self {
        let Some(congestion) = congestion else { return self };
        let script =
            format!("echo {congestion} > /proc/sys/net/ipv4/tcp_congestion_control && exec \"$0\" \"$@\"");
        let words = ["-c".to_owned(), script, self.program.clone()];
        let arguments = words.into_iter().chain(self.arguments).collect();
        Self { program: "sh".to_owned(), arguments, ..self }
    }

    /// The command line of one of a transport's programs.
    pub(super) fn of_transport(command: ProgramCommand) -> Self {
        let port = match command.ready {
            ReadyAt::Tcp(port) => ListenPort::Tcp(port),
            ReadyAt::Udp(port) => ListenPort::Udp(port),
        };
        Self::new(command.program, command.arguments).listening_on(port)
    }

    pub(super) fn listening_on(mut self, listens_on: ListenPort) -> Self {
        self.listens_on = Some(listens_on);
        self
    }
}

/// The command lines of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    /// At the receiving node; started first.
    pub server: Option<CommandLine>,
    /// At the sending node.
    pub client: CommandLine,
}

/// The addresses and the port of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The sender's address.
    pub from: IpAddr,
    /// The address at which the receiver listens.
    pub to: IpAddr,
    /// The address to which the sender connects: the receiver's, or that of a proxy.
    pub connect: IpAddr,
    /// The receiver's port; the next one also belongs to the flow.
    pub port: u16,
    /// The receiver's membership in the group whose address `to` and `connect` are; `None` where these are a node's.
    pub member: Option<GroupMember>,
}

/// The membership of a receiver's server in the group of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Number of the interface on which it joins: the one that leads to the sender.
    pub interface: u32,
    /// The only sender that it listens to; `None` for any.
    pub source: Option<IpAddr>,
    /// Its own address.
    pub address: IpAddr,
    /// The link by which the sender's packets to the group leave.
    pub sender: SenderLink,
}

/// The link by which packets to a group leave their sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderLink {
    /// Number of the sender's interface.
    pub interface: u32,
    /// Rate of the link, if it has one.
    pub rate: Option<Rate>,
    /// Maximum length of a packet there, in bytes.
    pub mtu: u32,
}

impl GroupMember {
    /// A member with this address, on its first interface, as is the sender.
    pub fn alone(address: IpAddr) -> Self {
        Self { interface: 0, source: None, address, sender: SenderLink::default() }
    }
}

impl Ends {
    /// The addresses for a program whose connections another program on its own host carries.
    #[must_use]
    pub fn behind_program(self) -> Self {
        let local = self.of_programs().on_loopback().listen.ip();
        Self { from: local, to: local, connect: local, port: self.port, member: None }
    }

    /// The addresses for the command lines of a transport's programs.
    pub fn of_programs(self) -> ProgramEnds {
        ProgramEnds { listen: self.listen(), connect: self.target() }
    }

    /// Address at which the server listens.
    pub(super) fn listen(self) -> SocketAddr {
        SocketAddr::new(self.to, self.port)
    }

    /// The address to which the client connects.
    pub(super) fn target(self) -> SocketAddr {
        SocketAddr::new(self.connect, self.port)
    }

    /// The address at which the server listens, in iperf2's notation: a group's with the interface.
    pub(super) fn bind(self) -> String {
        match self.member {
            Some(member) => format!("{}%{}", self.to, interface_name(member.interface)),
            None => self.to.to_string(),
        }
    }

    pub(super) fn ipv6(self) -> bool {
        self.to.is_ipv6()
    }
}

/// The task of a program, beside its own options.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The flow's name.
    pub flow: &'a str,
    /// Its addresses, at the receiver that the task is of.
    pub ends: Ends,
    /// Its addresses at each of its receivers.
    pub receivers: &'a [Ends],
    /// The kind of sockets that it uses.
    pub socket: Socket,
    /// The time of its start.
    pub start: Instant,
    /// The time of its stop.
    pub stop: Instant,
    /// The measurement window.
    pub window: (Instant, Instant),
    /// The interval of its reports.
    pub step: Duration,
    /// The directory for files of the flow.
    pub dir: &'a Path,
}

impl Task<'_> {
    /// Its duration, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.stop.since(self.start).as_secs_f64()
    }

    /// The interval of reports in seconds, within the limits of all programs.
    pub(super) fn step_seconds(&self) -> f64 {
        self.step.as_secs_f64().clamp(0.1, 60.0)
    }

    pub(super) fn is_udp(&self) -> bool {
        self.socket == Socket::Udp
    }

    pub(super) fn congestion(&self) -> Option<&'static str> {
        match self.socket {
            Socket::Tcp { congestion } => congestion,
            Socket::Udp | Socket::Icmp => None,
        }
    }

    /// A file of this flow.
    pub(super) fn file(&self, what: &str) -> PathBuf {
        self.dir.join(format!("{}-{what}", self.flow))
    }
}

/// The output of a flow's programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// The client's standard output.
    pub client: String,
    /// The client's standard error.
    pub client_errors: String,
    /// The server's standard output.
    pub server: String,
    /// The server's standard error.
    pub server_errors: String,
    /// Results of inspections after the run, by name.
    pub more: Vec<(&'static str, String)>,
    /// Start of the client, in seconds of the run.
    pub started: f64,
    /// Start of the client, in seconds of the machine's clock.
    pub started_wall: f64,
    /// End of both, in seconds of the run.
    pub ended: f64,
    /// First frame of data of a file to a group, in seconds of the run, if a link saw it.
    pub data_began: Option<f64>,
}

impl Outputs {
    pub(super) fn find(&self, name: &str) -> &str {
        self.more.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
    }

    /// The error of a program whose output lacks `what`.
    pub(super) fn lacks(&self, what: &'static str) -> Missing {
        Missing { what, said: self.complaint() }
    }

    /// The first line that the programs printed, errors first.
    pub(super) fn complaint(&self) -> String {
        let texts = [&self.client_errors, &self.server_errors, &self.client, &self.server];
        let line = texts.into_iter().find_map(|text| first_line(text));
        line.unwrap_or_else(|| "they said nothing".to_owned())
    }
}

/// The first line with a letter or digit, cut to the width of a terminal.
pub(super) fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric))?;
    Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
}
