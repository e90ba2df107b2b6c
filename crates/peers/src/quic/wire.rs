//! QUIC's packets, as far as what this end sends is read again: quinn-proto does not say what of a stream is on the
//! wire.
//!
//! ```text
//! short header: | 01spp.pp | connection id (8) | packet number (1-4) | frames ... | tag (16) |
//! long header:  | 11tt..pp | version (4) | len, id | len, id | [len, token]
//!               | length | number | frames ... | tag (16) |
//! ```
//!
//! RFC 9000 sections 17 and 19, and 16 for the numbers of varying length. Frames of streams are in packets with a short
//! header, of which a datagram has at most one, its last. No secret hides them: see `crypto`.

use hopcast_core::bytes::{Malformed, Reader};

use super::crypto::TAG;

/// The length of the connection ids of both ends.
pub(super) const CONNECTION_ID: usize = 8;

/// The bit of the first byte that marks a long header (RFC 9000 section 17.2).
const LONG: u8 = 0x80;
/// Type of a PADDING frame (RFC 9000 section 19.1).
const PADDING: u8 = 0x00;
/// Type of an ACK frame without ECN counts (RFC 9000 section 19.3).
const ACK: u8 = 0x02;

/// A STREAM frame (RFC 9000 section 19.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamFrame {
    pub stream: u64,
    pub offset: u64,
    pub len: u64,
}

/// Finds the STREAM frames of a datagram that this end has made. True if it calls for an acknowledgement, and so counts
/// as in flight (RFC 9002 section 2); as that of a handshake is taken to do.
pub(super) fn stream_frames(datagram: &[u8], mut found: impl FnMut(StreamFrame)) -> bool {
    let Ok(frames) = one_rtt(datagram) else { return true };
    let mut reader = Reader::new(frames);
    let mut eliciting = datagram.first().is_some_and(|first| first & LONG != 0);
    while let Some(&kind) = reader.rest().first() {
        eliciting |= kind != PADDING && kind != ACK;
        match frame(&mut reader) {
            Ok(Some(frame)) => found(frame),
            Ok(None) => {}
            Err(_) => break,
        }
    }
    eliciting
}

/// The frames of the packet with a short header.
fn one_rtt(datagram: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = Reader::new(datagram);
    loop {
        let first = reader.u8("header")?;
        if first & LONG == 0 {
            let number = usize::from(first & 3) + 1;
            reader.take(CONNECTION_ID + number, "short header")?;
            let len = reader.rest().len().checked_sub(TAG).ok_or(Malformed { field: "tag" })?;
            return reader.take(len, "frames");
        }
        reader.u32("version")?;
        for _ in 0..2 {
            let len = reader.u8("connection ID length")?;
            reader.take(len.into(), "connection ID")?;
        }
        if first & 0x30 == 0 {
            let len = reader.varint("token length")?;
            skip(&mut reader, len, "token")?;
        }
        let len = reader.varint("length")?;
        skip(&mut reader, len, "long packet")?;
    }
}

/// Reads past one frame, and returns it if it is one of a stream.
///
/// # Errors
/// It is cut off, or none that quinn-proto sends here.
fn frame(reader: &mut Reader<'_>) -> Result<Option<StreamFrame>, Malformed> {
    let kind = reader.u8("frame type")?;
    match kind {
        // And PING, HANDSHAKE_DONE.
        PADDING | 0x01 | 0x1E => {}
        // The largest, its delay, the number of further ranges, the first range.
        ACK => {
            numbers(reader, 2)?;
            let ranges = reader.varint("ACK range count")?;
            numbers(reader, 1 + 2 * ranges)?;
        }
        // RESET_STREAM.
        0x04 => numbers(reader, 3)?,
        // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
        0x05 | 0x11 | 0x15 => numbers(reader, 2)?,
        // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
        0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => numbers(reader, 1)?,
        // NEW_CONNECTION_ID.
        0x18 => {
            numbers(reader, 2)?;
            let len = reader.u8("connection ID length")?;
            reader.take(usize::from(len) + 16, "connection ID")?;
        }
        0x08..=0x0F => {
            let stream = reader.varint("stream ID")?;
            let offset = if kind & 4 == 0 { 0 } else { reader.varint("stream offset")? };
            let len =
                if kind & 2 == 0 { reader.rest().len() as u64 } else { reader.varint("stream length")? };
            skip(reader, len, "stream data")?;
            return Ok(Some(StreamFrame { stream, offset, len }));
        }
        // The rest close a connection or change paths: no stream's bytes go with them.
        _ => return Err(Malformed { field: "frame type" }),
    }
    Ok(None)
}

/// Reads past `count` numbers of a frame.
fn numbers(reader: &mut Reader<'_>, count: u64) -> Result<(), Malformed> {
    (0..count).try_for_each(|_| reader.varint("frame").map(drop))
}

/// Reads past `len` bytes.
fn skip(reader: &mut Reader<'_>, len: u64, field: &'static str) -> Result<(), Malformed> {
    reader.take(usize::try_from(len).unwrap_or(usize::MAX), field).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(datagram: &[u8]) -> Vec<StreamFrame> {
        let mut frames = Vec::new();
        let eliciting = stream_frames(datagram, |frame| frames.push(frame));
        assert!(eliciting || frames.is_empty());
        frames
    }

    #[test]
    fn acknowledgements_alone_call_for_none() {
        let packet = |frames: &[u8]| [&[0x40][..], &[7; CONNECTION_ID], &[1], frames, &[0; TAG]].concat();
        let ack = [0x02, 5, 0, 0, 2, 0x00, 0x00];
        assert!(!stream_frames(&packet(&ack), |_| panic!("a stream")));
        assert!(stream_frames(&packet(&[&ack[..], &[0x10, 1]].concat()), |_| panic!("a stream")));
    }

    #[test]
    fn the_stream_frames_behind_others_and_behind_other_packets_are_found() {
        let short = [&[0x41][..], &[7; 8], &[0, 9]].concat();
        // ACK of 5 to 3 and of 1, MAX_DATA, STREAM 4 at 0x4321 with a length of 2, then one without.
        let frames =
            [0x02, 5, 0, 1, 2, 0, 0, 0x10, 0x42, 0, 0x0E, 4, 0x80, 0, 0x43, 0x21, 2, 9, 9, 0x08, 0, 1, 2, 3];
        let packet = [&short[..], &frames, &[0; TAG]].concat();
        let expected =
            [StreamFrame { stream: 4, offset: 0x4321, len: 2 }, StreamFrame { stream: 0, offset: 0, len: 3 }];
        assert_eq!(found(&packet), expected);
        let handshake = [&[0xE0, 0, 0, 0, 1, 2, 8, 8, 1, 7, 4][..], &[1; 4]].concat();
        let initial = [&[0xC0, 0, 0, 0, 1, 0, 0, 2, 6, 6, 3][..], &[1; 3]].concat();
        assert_eq!(found(&[initial, handshake, packet].concat()), expected);
    }

    #[test]
    fn what_is_cut_off_has_no_frames() {
        let packet = [&[0x40][..], &[7; 8], &[1, 0x0A, 0, 4, 1, 2, 3, 4], &[0; TAG]].concat();
        assert_eq!(found(&packet).len(), 1);
        for len in 0..packet.len() {
            assert_eq!(found(&packet[..len]), [], "{len}");
        }
    }
}
