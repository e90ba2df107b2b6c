//! A handshake in the shape of TLS 1.3's: hello, hello and certificates, finished.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-----------------------------------------------+
//! |     kind      |                    length                     |
//! +---------------+-----------------------------------------------+
//! |            random (32), of the two hellos alone               |
//! +-------------------------------+-------------------------------+
//! |     length of parameters      |  transport parameters, then zeros ...
//! +-------------------------------+
//! ```
//!
//! Messages have TLS's framing (RFC 8446 section 4). Like TLS's, the client's hello and the server's flight carry the
//! transport parameters.

use core::any::Any;
use std::sync::Arc;

use bytes::Buf;
use quinn_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

use super::keys::Secret;

/// The kinds of messages, by TLS's numbers (RFC 8446 section 4); the certificate stands for the whole of the server's
/// encrypted flight.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;
const FINISHED: u8 = 20;

/// Lengths in bytes. Chosen, each that of a usual message: a client hello with one key share, server name
/// and ALPN; the server's answer with its key share; its extensions, a chain of two certificates with ECDSA keys, the
/// signature and *finished*; the client's *finished* over SHA-256.
const CLIENT_HELLO_LEN: usize = 300;
const SERVER_HELLO_LEN: usize = 90;
const CERTIFICATE_LEN: usize = 1800;
const FINISHED_LEN: usize = 36;
/// Maximum length of a message, in bytes. Chosen: above [`CERTIFICATE_LEN`], the longest; it bounds what is kept of a
/// forged one.
const MAX_MESSAGE: usize = 4096;
/// Bytes before a message: its kind and length (RFC 8446 section 4).
const HEADER: usize = 4;
/// Bytes of the random number in a hello (RFC 8446 section 4.1.2).
const RANDOM: usize = 32;
/// TLS's alert for messages that cannot be read (RFC 8446 section 6).
const DECODE_ERROR: u8 = 50;

/// The beginning of a session: 32 random bytes, for this side of one connection.
#[derive(Clone, Debug)]
pub(in super::super) struct Hello(pub [u8; RANDOM]);

impl Hello {
    fn session(&self, side: Side, parameters: &TransportParameters) -> Box<dyn Session> {
        let mut own = Vec::new();
        parameters.write(&mut own);
        Box::new(Handshake {
            side,
            random: self.0,
            own,
            peer: None,
            received: Vec::new(),
            step: if side.is_client() { Step::Hello } else { Step::AwaitHello },
            secret: Secret::default(),
            generation: 0,
        })
    }
}

impl ClientConfig for Hello {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Side::Client, params))
    }
}

impl ServerConfig for Hello {
    fn initial_keys(&self, _version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(Secret::initial(dst_cid).keys(Side::Server))
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.session(Side::Server, params)
    }
}

/// Progress of a session; who has nothing to write waits for the message that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The client writes its hello.
    Hello,
    AwaitHello,
    /// The client has read the server's hello, and takes the handshake's keys.
    Greeted,
    /// The server answers with its hello, then with its flight.
    Answer,
    Certify,
    AwaitCertificate,
    /// The client writes its *finished*.
    Finish,
    AwaitFinished,
    Done,
}

struct Handshake {
    side: Side,
    random: [u8; RANDOM],
    /// This end's transport parameters, and the peer's.
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    /// Of a message that is not complete.
    received: Vec<u8>,
    step: Step,
    secret: Secret,
    /// Number of the next keys of the application's data.
    generation: u64,
}

impl Handshake {
    fn take(&mut self, kind: u8, mut body: &[u8]) -> Option<()> {
        self.step = match (self.step, kind, self.side) {
            (Step::AwaitHello, CLIENT_HELLO, Side::Server) => {
                let (random, rest) = body.split_first_chunk::<RANDOM>()?;
                body = rest;
                self.secret = Secret::default().derive(&[random, &self.random]);
                self.read_parameters(body)?;
                Step::Answer
            }
            (Step::AwaitHello, SERVER_HELLO, Side::Client) => {
                let random = body.first_chunk::<RANDOM>()?;
                self.secret = Secret::default().derive(&[&self.random, random]);
                Step::Greeted
            }
            (Step::AwaitCertificate, CERTIFICATE, Side::Client) => {
                self.read_parameters(body)?;
                Step::Finish
            }
            (Step::AwaitFinished, FINISHED, Side::Server) => Step::Done,
            _ => return None,
        };
        Some(())
    }

    fn read_parameters(&mut self, mut body: &[u8]) -> Option<()> {
        let len = usize::from(body.try_get_u16().ok()?);
        let mut parameters = body.get(..len)?;
        self.peer = Some(TransportParameters::read(self.side, &mut parameters).ok()?);
        Some(())
    }

    fn data_secret(&self) -> Secret {
        self.secret.derive(&[b"data", &self.generation.to_be_bytes()])
    }

    fn data_keys(&mut self) -> Keys {
        let keys = self.data_secret().keys(self.side);
        self.generation += 1;
        keys
    }
}

/// Appends a message of at least `len` bytes.
fn put(buf: &mut Vec<u8>, kind: u8, len: usize, parts: &[&[u8]]) {
    let start = buf.len();
    buf.extend([kind, 0, 0, 0]);
    parts.iter().for_each(|part| buf.extend_from_slice(part));
    buf.resize(buf.len().max(start + len), 0);
    let body = (buf.len() - start - HEADER) as u32;
    buf[start + 1..start + HEADER].copy_from_slice(&body.to_be_bytes()[1..]);
}

impl Session for Handshake {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        Secret::initial(dst_cid).keys(side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn quinn_proto::crypto::HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        while let Some(&[kind, a, b, c]) = self.received.first_chunk::<HEADER>() {
            let len = u32::from_be_bytes([0, a, b, c]) as usize;
            let end = HEADER + len;
            let taken = if end > MAX_MESSAGE {
                None
            } else if self.received.len() < end {
                return Ok(false);
            } else {
                let message: Vec<u8> = self.received.drain(..end).collect();
                self.take(kind, &message[HEADER..])
            };
            taken.ok_or_else(|| TransportError::from(TransportErrorCode::crypto(DECODE_ERROR)))?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let own_len = (self.own.len() as u16).to_be_bytes();
        match self.step {
            Step::Hello => {
                put(buf, CLIENT_HELLO, CLIENT_HELLO_LEN, &[&self.random, &own_len, &self.own]);
                self.step = Step::AwaitHello;
                None
            }
            Step::Answer => {
                put(buf, SERVER_HELLO, SERVER_HELLO_LEN, &[&self.random]);
                self.step = Step::Certify;
                Some(self.secret.keys(self.side))
            }
            Step::Certify => {
                put(buf, CERTIFICATE, CERTIFICATE_LEN, &[&own_len, &self.own]);
                self.step = Step::AwaitFinished;
                Some(self.data_keys())
            }
            Step::Greeted => {
                self.step = Step::AwaitCertificate;
                Some(self.secret.keys(self.side))
            }
            Step::Finish => {
                put(buf, FINISHED, FINISHED_LEN, &[]);
                self.step = Step::Done;
                Some(self.data_keys())
            }
            Step::AwaitHello | Step::AwaitCertificate | Step::AwaitFinished | Step::Done => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.data_secret().packet_keys(self.side);
        self.generation += 1;
        Some(keys)
    }

    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        // Nobody here sends one.
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(side: Side) -> Box<dyn Session> {
        let parameters = TransportParameters::read(side, &mut &[][..]).expect("none need be given");
        Hello([side as u8; RANDOM]).session(side, &parameters)
    }

    /// The message that is written next: its kind, its length in all, and itself.
    fn written(session: &mut dyn Session) -> (u8, usize, Vec<u8>) {
        let mut message = Vec::new();
        session.write_handshake(&mut message);
        (message.first().copied().unwrap_or_default(), message.len(), message)
    }

    #[test]
    fn messages_have_the_kinds_of_tls_and_the_lengths_of_usual_ones() {
        let (mut client, mut server) = (session(Side::Client), session(Side::Server));
        // RFC 8446 section 4: client_hello, server_hello, certificate, finished.
        let (kind, len, hello) = written(&mut *client);
        assert_eq!((kind, len), (1, 300));
        assert_eq!(hello[..4], [1, 0, 1, 0x28], "a length of 296 behind the header");
        server.read_handshake(&hello).unwrap();
        let (kind, len, hello) = written(&mut *server);
        assert_eq!((kind, len), (2, 90));
        let (kind, len, certificate) = written(&mut *server);
        assert_eq!((kind, len), (11, 1800));
        client.read_handshake(&hello).unwrap();
        assert_eq!(written(&mut *client).1, 0, "it only takes keys");
        client.read_handshake(&certificate).unwrap();
        let (kind, len, finished) = written(&mut *client);
        assert_eq!((kind, len), (20, 36));
        server.read_handshake(&finished).unwrap();
        assert!(!client.is_handshaking() && !server.is_handshaking());
    }

    #[test]
    fn a_message_of_more_than_4096_bytes_is_a_decode_error() {
        let begins = |len: u16| {
            let [a, b] = (len - 4).to_be_bytes();
            session(Side::Server).read_handshake(&[1, 0, a, b]).map_err(|error| error.code)
        };
        assert_eq!(begins(4096), Ok(false), "the rest is waited for");
        // RFC 8446 section 6: decode_error is 50.
        assert_eq!(begins(4097), Err(TransportErrorCode::crypto(50)));
    }
}
