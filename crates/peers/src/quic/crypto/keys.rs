//! Keys that authenticate, and do not encrypt.

use core::hash::Hasher;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, CryptoError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
};
use quinn_proto::{ConnectionId, Side};
use siphasher::sip128::{Hasher128, SipHasher13};

/// The length of a packet's tag, and of the sample for header protection: those of AES-GCM and ChaCha20 (RFC 9001
/// sections 5.3 and 5.4).
pub(in super::super) const TAG: usize = 16;

/// The secret from which keys are derived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Secret([u8; 16]);

impl Secret {
    /// The secret of Initial packets, which all can know (RFC 9001 section 5.2).
    pub(super) fn initial(id: &ConnectionId) -> Self {
        Self::default().derive(&[b"initial", id])
    }

    /// The secret derived from this one and `parts`.
    pub(super) fn derive(self, parts: &[&[u8]]) -> Self {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        for part in parts {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
        Self(hasher.finish128().as_bytes())
    }

    /// Keys for both directions, as `side` has them.
    pub(super) fn keys(self, side: Side) -> Keys {
        let header = || -> Box<dyn HeaderKey> { Box::new(Plain) };
        Keys { header: KeyPair { local: header(), remote: header() }, packet: self.packet_keys(side) }
    }

    pub(super) fn packet_keys(self, side: Side) -> KeyPair<Box<dyn PacketKey>> {
        let key = |from: Side| -> Box<dyn PacketKey> {
            let name: &[u8] = if from.is_client() { b"client" } else { b"server" };
            Box::new(Tag(self.derive(&[name])))
        };
        KeyPair { local: key(side), remote: key(!side) }
    }
}

/// Authenticates packets with a keyed hash.
struct Tag(Secret);

impl Tag {
    fn of(&self, packet: u64, parts: [&[u8]; 2]) -> [u8; TAG] {
        let mut hasher = SipHasher13::new_with_key(&self.0.0);
        hasher.write_u64(packet);
        for part in parts {
            hasher.write(part);
        }
        hasher.finish128().as_bytes()
    }
}

impl PacketKey for Tag {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (bytes, tag) = buf.split_at_mut(buf.len() - TAG);
        let (header, payload) = bytes.split_at(header_len);
        tag.copy_from_slice(&self.of(packet, [header, payload]));
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let len = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if self.of(packet, [header, &payload[..len]]) != payload[len..] {
            return Err(CryptoError);
        }
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Protects no header, and wants a sample nevertheless, so that packets are as long as they would be.
struct Plain;

impl HeaderKey for Plain {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

/// Makes the tokens by which an end that has forgotten a connection says so.
pub(in super::super) struct ResetKey([u8; 16]);

impl ResetKey {
    pub(in super::super) const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(&Secret(self.0).derive(&[data]).0);
    }

    fn signature_len(&self) -> usize {
        TAG
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if Secret(self.0).derive(&[data]).0 == signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// Opens no token: none is ever issued, so that any is a stranger's.
pub(in super::super) struct TokenKey;

impl HandshakeTokenKey for TokenKey {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for TokenKey {
    fn seal(&self, _data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _data: &'a mut [u8], _additional_data: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_with_any_bit_flipped_is_refused() {
        let id = ConnectionId::new(&[1, 2, 3]);
        let client = Secret::initial(&id).keys(Side::Client).packet;
        let server = Secret::initial(&id).keys(Side::Server).packet;
        let mut sealed = [&b"headpayload"[..], &[0; TAG]].concat();
        client.local.encrypt(7, &mut sealed, 4);
        let open = |packet: u64, bytes: &[u8]| {
            let mut payload = BytesMut::from(&bytes[4..]);
            server.remote.decrypt(packet, &bytes[..4], &mut payload).map(|()| payload)
        };
        assert_eq!(open(7, &sealed).unwrap(), &b"payload"[..]);
        assert!(open(8, &sealed).is_err());
        for bit in 0..8 * sealed.len() {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(7, &flipped).is_err(), "{bit}");
        }
    }

    #[test]
    fn each_direction_and_each_connection_has_a_key_of_its_own() {
        let sealed = |id: &[u8], side| {
            let mut packet = vec![0; 20 + TAG];
            Secret::initial(&ConnectionId::new(id)).keys(side).packet.local.encrypt(0, &mut packet, 4);
            packet
        };
        assert_ne!(sealed(b"a", Side::Client), sealed(b"a", Side::Server));
        assert_ne!(sealed(b"a", Side::Client), sealed(b"b", Side::Client));
    }
}
