//! The key of a domain, by which a sender knows the responses of its routers from forged ones.
//!
//! The thesis asks for "an authentication mechanism for discovery responses similar to established routing protocols
//! like OSPF" (section 5.2.4), which has a key that all routers of a domain share. Here senders have it too. A request
//! bears a nonce, and a response repeats it and has a code over all that it says. Routers keep no state for that.
//!
//! | code covers | so a response is refused that |
//! |---|---|
//! | nonce of the request | was recorded in an earlier discovery |
//! | sender | was made for another sender |
//! | router | names another address than the one it was made for |
//! | receiver | was made for another receiver |
//! | hops | says another distance |
//!
//! The code is SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012), which is made for authentication codes of
//! short messages under a key of 128 bits.
//!
//! A nonce alone, without a key, refuses whoever does not see the requests, about each receiver for itself: a member
//! sees its own. Whoever is on the path sees them, and needs the key to be refused. Neither helps against one who has
//! the key; nor against one who sees a request, and changes its count of hops or sends another in the sender's name:
//! routers sign where it says that they are.

use std::fmt;
use std::hash::Hasher;
use std::net::Ipv6Addr;
use std::str::FromStr;

use hopcast_core::{Buffer, Stream};
use siphasher::sip;
use siphasher::sip128::{Hasher128, SipHasher24};

use super::wire::{CODE, Kind, NO_NEXT_HEADER, Packet};

/// A secret of 16 bytes; written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 16]);

/// The statement of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Nonce of the request.
    pub nonce: u64,
    /// Source of the request.
    pub sender: Ipv6Addr,
    /// Source of the response.
    pub router: Ipv6Addr,
    /// The receiver that both are about.
    pub receiver: Ipv6Addr,
    /// The router's distance.
    pub hops: u8,
}

impl Key {
    /// A key of these bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The authentication code of a statement.
    pub fn code(&self, statement: &Statement) -> [u8; CODE] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&statement.nonce.to_be_bytes());
        for address in [statement.sender, statement.router, statement.receiver] {
            hasher.write(&address.octets());
        }
        hasher.write(&[statement.hops]);
        hasher.finish128().as_bytes()
    }

    /// Whether a code is that of a statement. The time does not tell how much of it is right.
    pub fn accepts(&self, statement: &Statement, code: &[u8; CODE]) -> bool {
        let own = self.code(statement);
        own.iter().zip(code).fold(0, |different, (own, other)| different | (own ^ other)) == 0
    }
}

impl Statement {
    /// The response that says so, to the sender, with a code under a key if the request had a nonce.
    pub(super) fn response(&self, key: Option<&Key>, hop_limit: u8) -> Buffer {
        let code = key.filter(|_| self.nonce != 0).map(|key| key.code(self));
        let response = Packet {
            traffic: 0,
            hop_limit,
            source: self.router,
            destination: self.sender,
            kind: Kind::Response { nonce: self.nonce, code },
            hops: self.hops,
            hold: 0,
            reserved: 0,
            list: &[self.receiver.octets()],
            ports: None,
            protocol: NO_NEXT_HEADER,
            payload: &[],
        };
        response.emit()
    }
}

impl FromStr for Key {
    type Err = &'static str;

    fn from_str(digits: &str) -> Result<Self, Self::Err> {
        let is_hex = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u128::from_str_radix(digits, 16) {
            Ok(bits) if is_hex => Ok(Self(bits.to_be_bytes())),
            _ => Err("32 hexadecimal digits"),
        }
    }
}

/// Does not show the secret, but half of what it makes of nothing: two keys are told apart.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:016x}…)", SipHasher24::new_with_key(&self.0).finish128().h1)
    }
}

/// The nonces of one discovery, each of which says nothing about the others.
#[derive(Clone, Copy)]
pub(super) struct Nonces([u8; 16]);

impl Nonces {
    /// Those of a new discovery.
    pub(super) fn draw(random: &mut Stream) -> Self {
        let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
        Self(bits.to_be_bytes())
    }

    /// The nonce of the request to a receiver, not 0.
    pub(super) fn of(&self, receiver: Ipv6Addr) -> u64 {
        let mut hasher = sip::SipHasher24::new_with_key(&self.0);
        hasher.write(&receiver.octets());
        hasher.finish().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn a_code_fits_nothing_but_its_statement_and_key() {
        let key: Key = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
        let [sender, router, receiver] = ["fd14::1", "fd14::5:1", "fd14::2"].map(at);
        let said = Statement { nonce: 7, sender, router, receiver, hops: 3 };
        let code = key.code(&said);
        assert!(key.accepts(&said, &code));
        let other = at("fd14::9");
        for changed in [
            Statement { nonce: 8, ..said },
            Statement { sender: other, ..said },
            Statement { router: other, ..said },
            Statement { receiver: other, ..said },
            Statement { hops: 4, ..said },
            // The same addresses in another order.
            Statement { router: receiver, receiver: router, ..said },
        ] {
            assert!(!key.accepts(&changed, &code), "{changed:?}");
        }
        assert!(!Key::new([7; 16]).accepts(&said, &code));
        for bit in 0..128 {
            let mut code = code;
            code[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.accepts(&said, &code), "{bit}");
        }
    }

    #[test]
    fn a_key_is_written_as_32_hexadecimal_digits_and_not_shown() {
        for (text, is) in [
            ("00112233445566778899aabbccddeeff", true),
            ("00112233445566778899AABBCCDDEEFF", true),
            ("0011", false),
            ("00112233445566778899aabbccddeefff", false),
            ("+0112233445566778899aabbccddeeff", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<Key>().is_ok(), is, "{text}");
        }
        let [one, other] = [0xab, 0xac].map(|byte| format!("{:?}", Key::new([byte; 16])));
        assert_ne!(one, other, "a run with another key is another run");
        assert!(!one.contains("abab"), "{one}");
    }
}
