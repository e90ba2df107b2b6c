//! kcptun: carries the TCP connections of other programs in KCP.

use hopcast_twin::scenario::model::Kcptun;

use super::command::{CommandLine, Commands, Ends, ListenPort};

/// Both kcptuns of a flow: the client accepts connections at the sender's loopback address, and the server opens them
/// at the receiver's, both at the flow's port.
pub(super) fn commands(config: &Kcptun, ends: Ends) -> Commands {
    let inner = ends.behind_kcptun();
    let common = |command: CommandLine| {
        let options = [
            ("--mode", config.mode.to_string()),
            ("--crypt", config.crypt.to_string()),
            ("--datashard", config.data_shards.to_string()),
            ("--parityshard", config.parity_shards.to_string()),
            ("--sndwnd", config.send_window.to_string()),
            ("--rcvwnd", config.receive_window.to_string()),
            ("--mtu", config.mtu.to_string()),
        ];
        command
            .and(options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]))
            .and_if(!config.compression, ["--nocomp"])
            .and(config.arguments.iter().cloned())
    };
    let server = CommandLine::new("kcptun-server", ["-l", &ends.listen().to_string()])
        .and(["-t", &inner.target().to_string()])
        .listening_on(ListenPort::Udp(ends.port));
    let client = CommandLine::new("kcptun-client", ["-l", &inner.listen().to_string()])
        .and(["-r", &ends.target().to_string()])
        .listening_on(ListenPort::Tcp(ends.port));
    Commands { server: Some(common(server)), client: common(client) }
}
