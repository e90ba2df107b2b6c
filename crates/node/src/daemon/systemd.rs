//! Notifications to systemd, if it has started the node (sd_notify(3)).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a line to systemd; does nothing if systemd has not started the node.
pub(super) fn notify(line: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match path.as_encoded_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&path),
    };
    // systemd may not listen.
    let _ = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(line.as_bytes(), &address).map(drop));
}
