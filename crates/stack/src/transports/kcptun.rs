//! `kcptun`: a stream through real kcptuns at both ends, in live runs only.

use std::net::SocketAddr;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{choice, flag, whole, words};
use hopcast_config::yaml::Node;
use hopcast_core::plug::TcpPlug;

use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};
use crate::transport::on_loopback;
use crate::transport::{
    End, Ends, Layer, PortKind, Ports, ProgramCommand, ProgramEnds, ProgramPair, ReadyAt, Row, Socket,
    Transport,
};

pub(super) static KCPTUN: Row = Row {
    name: "kcptun",
    about: "a stream through real kcptuns at both ends: live runs only; `kcp` and `kcp-fec` are its models",
    offers: Ports(&[PortKind::Stream]),
    worlds: Worlds::Live {
        models: "`kcp` and `kcp-fec` are its models",
        programs: &[("kcptun-server", "kcptun"), ("kcptun-client", "kcptun")],
    },
    socket: Some(Socket::Tcp { congestion: None }),
    options: || OPTIONS.docs(&Kcptun::default()),
    read: |row, options| OPTIONS.layer(row, options, Kcptun::default()),
    ..Row::BASE
};

/// Modes of kcptun, which set how soon it retransmits, by its own names.
const MODES: [&str; 4] = ["normal", "fast", "fast2", "fast3"];
/// Encryption of kcptun, by its own names.
const CRYPTS: [&str; 3] = ["none", "aes", "salsa20"];

/// The settings of both kcptuns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kcptun {
    /// Mode, which sets how soon it retransmits.
    mode: &'static str,
    /// Packets of a block that parity protects; 0 for no parity.
    data_shards: u8,
    /// Packets of parity of a block.
    parity_shards: u8,
    /// Maximum number of packets outstanding.
    send_window: u16,
    /// Maximum number of packets held back for order.
    receive_window: u16,
    /// Whether it compresses.
    compression: bool,
    /// Encryption.
    crypt: &'static str,
    /// Maximum length of a UDP payload, in bytes.
    mtu: u16,
    /// More arguments for both, as on their command lines.
    arguments: Vec<String>,
}

impl Default for Kcptun {
    /// kcptun's defaults but for `fast3`, as large windows at the client as at the server, and neither compression nor
    /// encryption, which would measure the processor.
    fn default() -> Self {
        Self {
            mode: "fast3",
            data_shards: 10,
            parity_shards: 3,
            send_window: 1024,
            receive_window: 1024,
            compression: false,
            crypt: "none",
            mtu: 1350,
            arguments: Vec::new(),
        }
    }
}

static OPTIONS: Options<Kcptun> = Options(&[
    Opt {
        key: "mode",
        about: "How soon it repeats, by kcptun's own names.",
        form: Form::OneOf(&MODES),
        set: |kcptun, node, key| one_of(node, key, &MODES).map(|found| kcptun.mode = found),
        show: |kcptun| kcptun.mode.to_owned(),
    },
    Opt {
        key: "data-shards",
        about: "Packets that parity is made of, 0 to 100; 0 for none.",
        form: Form::Count,
        set: |kcptun, node, key| whole(node, key, 0..=100).map(|found| kcptun.data_shards = found as u8),
        show: |kcptun| shown(&kcptun.shards().0),
    },
    Opt {
        key: "parity-shards",
        about: "Packets of parity for them, 0 to 100; 0 for none.",
        form: Form::Count,
        set: |kcptun, node, key| whole(node, key, 0..=100).map(|found| kcptun.parity_shards = found as u8),
        show: |kcptun| shown(&kcptun.shards().1),
    },
    Opt {
        key: "send-window",
        about: "Packets outstanding, 1 to 32,768. It is the only bound on the rate.",
        form: Form::Count,
        set: |kcptun, node, key| window(node, key).map(|found| kcptun.send_window = found),
        show: |kcptun| shown(&kcptun.send_window),
    },
    Opt {
        key: "receive-window",
        about: "Packets held back for order, 1 to 32,768.",
        form: Form::Count,
        set: |kcptun, node, key| window(node, key).map(|found| kcptun.receive_window = found),
        show: |kcptun| shown(&kcptun.receive_window),
    },
    Opt {
        key: "compression",
        about: "Whether it compresses.",
        form: Form::Flag,
        set: |kcptun, node, key| flag(node, key).map(|found| kcptun.compression = found),
        show: |kcptun| on_off(kcptun.compression),
    },
    Opt {
        key: "crypt",
        about: "How it encrypts, by kcptun's own names. Encryption measures the processor.",
        form: Form::OneOf(&CRYPTS),
        set: |kcptun, node, key| one_of(node, key, &CRYPTS).map(|found| kcptun.crypt = found),
        show: |kcptun| kcptun.crypt.to_owned(),
    },
    Opt {
        key: "mtu",
        about: "The longest UDP payload in bytes, 576 to 1500.",
        form: Form::Count,
        set: |kcptun, node, key| whole(node, key, 576..=1500).map(|found| kcptun.mtu = found as u16),
        show: |kcptun| shown(&kcptun.mtu),
    },
    Opt {
        key: "arguments",
        about: "More arguments for both programs, as on their command lines.",
        form: Form::Words,
        set: |kcptun, node, key| words(node, key).map(|found| kcptun.arguments = found),
        show: |kcptun| kcptun.arguments.join(" "),
    },
]);

fn one_of(node: &Node, key: &str, words: &'static [&'static str]) -> Result<&'static str, Diagnostic> {
    let found = choice(node, key, words)?.0;
    Ok(words.iter().find(|word| **word == found).unwrap_or(&words[0]))
}

fn window(node: &Node, key: &str) -> Result<u16, Diagnostic> {
    Ok(whole(node, key, 1..=32_768)? as u16)
}

impl Kcptun {
    /// Packets of data and of parity: kcp-go makes parity only where both are there.
    fn shards(&self) -> (u8, u8) {
        let both = self.data_shards > 0 && self.parity_shards > 0;
        if both { (self.data_shards, self.parity_shards) } else { (0, 0) }
    }
}

impl Transport for Kcptun {
    fn overhead(&self, _: u64) -> u64 {
        // 20 for its encryption (even by `none`), 8 where there is parity, KCP's 24 and smux's 8.
        20 + (if self.shards().1 > 0 { 8 } else { 0 }) + 24 + 8
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        // The programs have the sockets below; the machine above speaks with the one on its own host.
        let accept = end.accepts(on_loopback(end.ends.local));
        end.nodes.kernel_tcp(end.node, TcpPlug { accept, ..TcpPlug::default() }).map(Some)
    }

    fn refuses_below(&self, own: &'static Row, lower: &Layer) -> Option<String> {
        (!lower.is_hosts_own()).then(|| {
            format!(
                "`over`: `{}` is a program and uses the host's sockets, and `{}` is none of them: write it alone, or over \
                 `[udp, tunnel, …]`",
                own.name,
                lower.row().name
            )
        })
    }

    fn ends_on_kernel(&self, ends: Ends) -> Ends {
        // The near end of the program that carries connections on.
        let local = SocketAddr::new(on_loopback(ends.local).ip(), 0);
        Ends { local, remote: on_loopback(ends.remote) }
    }

    /// The client takes connections at the sender's loopback, and the server hands them on to the receiver's, both at
    /// the flow's port.
    fn programs(&self, at: ProgramEnds) -> Option<ProgramPair> {
        let inner = at.on_loopback();
        let (data, parity) = self.shards();
        let common = [
            ("--mode", self.mode.to_owned()),
            ("--crypt", self.crypt.to_owned()),
            ("--datashard", data.to_string()),
            ("--parityshard", parity.to_string()),
            ("--sndwnd", self.send_window.to_string()),
            ("--rcvwnd", self.receive_window.to_string()),
            ("--mtu", self.mtu.to_string()),
        ];
        let common: Vec<String> = common
            .into_iter()
            .flat_map(|(option, value)| [option.to_owned(), value])
            .chain((!self.compression).then(|| "--nocomp".to_owned()))
            .chain(self.arguments.iter().cloned())
            .collect();
        let command = |name, [listen, to]: [String; 2], target: &str, ready| ProgramCommand {
            program: name,
            arguments: [&["-l".to_owned(), listen, target.to_owned(), to], &*common].concat(),
            ready,
        };
        let server = [at.listen.to_string(), inner.connect.to_string()];
        let client = [inner.listen.to_string(), at.connect.to_string()];
        Some(ProgramPair {
            server: command("kcptun-server", server, "-t", ReadyAt::Udp(at.listen.port())),
            client: command("kcptun-client", client, "-r", ReadyAt::Tcp(at.listen.port())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(kcptun: &Kcptun, at: &str) -> [String; 2] {
        let at = at.parse().unwrap();
        let ProgramPair { server, client } =
            kcptun.programs(ProgramEnds { listen: at, connect: at }).unwrap();
        assert_eq!((server.ready, client.ready), (ReadyAt::Udp(60_000), ReadyAt::Tcp(60_000)));
        [server, client].map(|command| format!("{} {}", command.program, command.arguments.join(" ")))
    }

    #[test]
    fn both_programs_are_called_with_the_same_settings() {
        let settings = "--mode fast3 --crypt none --datashard 10 --parityshard 3 --sndwnd 1024 --rcvwnd 1024 --mtu 1350 --nocomp";
        assert_eq!(
            commands(&Kcptun::default(), "10.0.0.2:60000"),
            [
                format!("kcptun-server -l 10.0.0.2:60000 -t 127.0.0.1:60000 {settings}"),
                format!("kcptun-client -l 127.0.0.1:60000 -r 10.0.0.2:60000 {settings}"),
            ]
        );
    }

    #[test]
    fn parity_without_data_is_none_and_more_arguments_come_last() {
        let kcptun = Kcptun {
            data_shards: 0,
            compression: true,
            crypt: "aes",
            arguments: vec!["--key".to_owned(), "secret".to_owned()],
            ..Kcptun::default()
        };
        let [server, _] = commands(&kcptun, "[fd00::2]:60000");
        let settings =
            "--mode fast3 --crypt aes --datashard 0 --parityshard 0 --sndwnd 1024 --rcvwnd 1024 --mtu 1350";
        assert_eq!(
            server,
            format!("kcptun-server -l [fd00::2]:60000 -t [::1]:60000 {settings} --key secret")
        );
    }
}
