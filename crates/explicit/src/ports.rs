//! The list of ports, in an IPv6 destination option (RFC 5058, section 9.3.2.2): for receivers that listen on different
//! ports.
//!
//! ```text
//! | next header | length in 8 bytes, less 1 | option type | 2 n | port 1 … port n | padding (PadN) to 8 bytes |
//!  0             1                           2             3     4
//! ```

use hopcast_core::Buffer;

use crate::Refusal;

/// Number of destination options among IPv6's extension headers (RFC 8200, section 4.6).
pub const DESTINATION_OPTIONS: u8 = 60;
/// Option that fills up (RFC 8200, section 4.2), behind its type the number of zeros that follow.
const PAD_N: u8 = 1;

/// Length of the header with `count` ports, in bytes.
pub const fn header_len(count: usize) -> usize {
    (4 + 2 * count).next_multiple_of(8)
}

/// A header that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports<'a> {
    /// The number of the header behind it.
    pub next_header: u8,
    /// The ports.
    pub list: &'a [[u8; 2]],
    /// The bytes behind it.
    pub rest: &'a [u8],
}

/// Reads the header at the beginning of `bytes`, with `count` ports in an option of this type.
///
/// # Errors
/// [`Refusal::Ports`] of a header that is not as [`put`] writes it.
#[inline(never)]
pub fn parse(bytes: &[u8], option: u8, count: usize) -> Result<Ports<'_>, Refusal> {
    let len = header_len(count);
    let (header, rest) = bytes.split_at_checked(len).ok_or(Refusal::Ports)?;
    let (ports, padding) = header[4..].split_at(2 * count);
    let form = [(len / 8 - 1) as u8, option, (2 * count) as u8];
    let is_padding = match padding {
        [] => true,
        [kind, len, zeros @ ..] => {
            *kind == PAD_N && usize::from(*len) == zeros.len() && zeros.iter().all(|zero| *zero == 0)
        }
        [_] => false,
    };
    if header[1..4] != form || !is_padding {
        return Err(Refusal::Ports);
    }
    Ok(Ports { next_header: header[0], list: ports.as_chunks().0, rest })
}

/// Puts the header with these ports, if there are any, in front of a payload of this protocol in `buffer`; the number
/// of the header that is in front then.
pub(crate) fn prepend(buffer: &mut Buffer, protocol: u8, option: u8, ports: Option<&[[u8; 2]]>) -> u8 {
    let Some(ports) = ports else { return protocol };
    put(buffer.prepend(header_len(ports.len())), protocol, option, ports);
    DESTINATION_OPTIONS
}

/// Writes the header into `bytes`, which has its [length](header_len).
pub fn put(bytes: &mut [u8], next_header: u8, option: u8, ports: &[[u8; 2]]) {
    let list = ports.as_flattened();
    let words = (bytes.len() / 8 - 1) as u8;
    bytes[..4].copy_from_slice(&[next_header, words, option, list.len() as u8]);
    bytes[4..4 + list.len()].copy_from_slice(list);
    if let [kind, len, zeros @ ..] = &mut bytes[4 + list.len()..] {
        *kind = PAD_N;
        *len = zeros.len() as u8;
        zeros.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_ports_comes_back_and_what_is_changed_does_not() {
        for count in 0..=127_u8 {
            let ports: Vec<[u8; 2]> = (0..count).map(|port| [port, 7]).collect();
            let mut bytes = vec![0xaa; header_len(ports.len())];
            put(&mut bytes, 17, 0x1e, &ports);
            assert_eq!(bytes.len() % 8, 0);
            bytes.extend(b"rest");
            let read = Ports { next_header: 17, list: &ports, rest: b"rest" };
            assert_eq!(parse(&bytes, 0x1e, ports.len()), Ok(read));
            assert_eq!(parse(&bytes, 0x5e, ports.len()), Err(Refusal::Ports), "another option");
            assert_eq!(parse(&bytes, 0x1e, ports.len() + 1), Err(Refusal::Ports), "another number");
            assert_eq!(parse(&bytes[..bytes.len() - 5], 0x1e, ports.len()), Err(Refusal::Ports), "cut off");
            let behind = 4 + 2 * ports.len()..bytes.len() - 4;
            for place in (1..4).chain(behind) {
                let mut changed = bytes.clone();
                changed[place] ^= 1;
                assert_eq!(parse(&changed, 0x1e, ports.len()), Err(Refusal::Ports), "{count} {place}");
            }
        }
    }
}
