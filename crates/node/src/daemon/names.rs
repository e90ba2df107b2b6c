//! Peers' host names and their addresses.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use hopcast_core::{Duration, Instant};
use log::warn;

use crate::config::{Peer, PeerAddress};

/// Resolves names on a thread of its own, since a resolver may take any time.
pub(super) struct Names {
    ask: Sender<usize>,
    answers: Receiver<(usize, Option<SocketAddr>)>,
    /// The state of resolution of each peer, if it has a host name.
    asked: Vec<Option<Asked>>,
    names: Vec<String>,
    version: u8,
}

#[derive(Clone, Copy, Default)]
struct Asked {
    at: Option<Instant>,
    pending: bool,
    /// Whether a failure was logged.
    said: bool,
}

impl Names {
    /// Names resolve to addresses of the IP version of the socket: IPv4 if `v4`.
    pub(super) fn new(peers: &[Peer], v4: bool) -> io::Result<Self> {
        let (ask, asked) = channel::<usize>();
        let (answer, answers) = channel();
        let hosts: Vec<Option<(String, u16)>> = peers
            .iter()
            .map(|peer| match &peer.address {
                PeerAddress::Name { host, port } => Some((host.clone(), *port)),
                PeerAddress::Address(_) | PeerAddress::Anywhere => None,
            })
            .collect();
        let names = peers.iter().map(|peer| peer.address.to_string()).collect();
        let known = hosts.iter().map(|host| host.as_ref().map(|_| Asked::default())).collect();
        let work = move || {
            for place in asked {
                let found = hosts[place].as_ref().and_then(|(host, port)| {
                    let mut found = (host.as_str(), *port).to_socket_addrs().ok()?;
                    found.find(|address| address.is_ipv4() == v4)
                });
                if answer.send((place, found)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("names".to_owned()).spawn(work)?;
        Ok(Self { ask, answers, asked: known, names, version: if v4 { 4 } else { 6 } })
    }

    /// Resolves a peer's host name, if it has one and `patience` has passed since the last time.
    pub(super) fn look_up(&mut self, now: Instant, place: usize, patience: Duration) {
        let Some(asked) = &mut self.asked[place] else { return };
        if !asked.pending && asked.at.is_none_or(|at| now >= at + patience) {
            *asked = Asked { at: Some(now), pending: true, ..*asked };
            let _ = self.ask.send(place);
        }
    }

    /// The next peer whose name was resolved, with the address.
    pub(super) fn found(&mut self) -> Option<(usize, SocketAddr)> {
        while let Ok((place, found)) = self.answers.try_recv() {
            let Some(asked) = &mut self.asked[place] else { continue };
            asked.pending = false;
            if let Some(address) = found {
                asked.said = false;
                return Some((place, address));
            }
            if !asked.said {
                asked.said = true;
                warn!("{} stands for no IPv{} address: asking again", self.names[place], self.version);
            }
        }
        None
    }
}
