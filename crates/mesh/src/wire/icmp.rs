//! The mesh's own echo and its errors, between originators.
//!
//! ```text
//!  0      1         2     3      4             10           16   17         18       20
//! | type | version | TTL | kind | destination | originator | id | reserved | number |
//! ```

use hopcast_wire::ethernet::Mac;

use super::field::header;

/// Kind: the answer to an echo request.
pub const ECHO_REPLY: u8 = 0;
/// Kind: there is no route to the destination.
pub const DESTINATION_UNREACHABLE: u8 = 3;
/// Kind: the destination is asked to answer.
pub const ECHO_REQUEST: u8 = 8;
/// Kind: an echo request had no hops left.
pub const TTL_EXCEEDED: u8 = 11;
/// Kind: the destination does not know the version of a request.
pub const PARAMETER_PROBLEM: u8 = 12;
/// Kind: the throughput meter's packets, which have other fields behind the identifier.
pub const THROUGHPUT_METER: u8 = 15;

header! {
    /// An echo, or an error about one. A packet may be longer: it records the addresses of the hops on its way.
    Icmp of Icmp, 20 bytes {
        /// Hops that it may go yet.
        ttl: u8;
        /// Kind of the message.
        kind: u8;
        /// Originator that it is for.
        destination: Mac;
        /// Originator that sent it.
        originator: Mac;
        /// Identifier of who asked, on the originator.
        uid: u8, reserved 1;
        /// Number of the request.
        seqno: u16;
    }
}
