//! The mesh's own echo and its errors, between originators.
//!
//! ```text
//!  0      1         2     3      4             10           16   17         18       20
//! | type | version | TTL | kind | destination | originator | id | recorded | number | addresses of hops, 16 or none |
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

/// Number of hops that a packet has room for, if it records its way (`BATADV_RR_LEN`).
pub const MAX_RECORDED: usize = 16;
/// Length of a packet that records its way (`struct batadv_icmp_packet_rr`).
pub const RECORDING_LEN: usize = 20 + 6 * MAX_RECORDED;

header! {
    /// An echo, or an error about one.
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
        uid: u8;
        /// Number of hops whose addresses the packet has recorded, behind the header and in the order of its way. A
        /// packet that records has room for [`MAX_RECORDED`].
        recorded: u8;
        /// Number of the request.
        seqno: u16;
    }
}
