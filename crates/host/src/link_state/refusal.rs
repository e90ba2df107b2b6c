//! Reasons why a packet of link-state routing, or a part of one, is dropped.

use hopcast_core::bytes::Malformed;

use crate::link_message::Unfit;

/// The reason why a packet, or an advertisement in one, is dropped, of which each is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The bytes are no packet of IP, or not all of the message is there.
    Truncated,
    /// The message is of another version.
    Version,
    /// There is no such type of message.
    Type,
    /// The checksum does not fit the message.
    Checksum,
    /// It was not sent to the routers of the link.
    Destination,
    /// Its source is no address of a router on the link.
    Sender,
    /// Its sender is in another area on this link.
    Area,
    /// Its sender has other intervals than the router.
    Timers,
    /// The sender of a message other than a Hello is no neighbour that both hear.
    Stranger,
    /// Its sender has the identifier of the router itself, or of another neighbour on the link.
    Identifier,
    /// An advertisement does not parse, is longer than allowed, or does not have its checksum.
    Advertisement,
    /// There is no room for another neighbour on the link.
    Neighbours,
    /// There is no room for another advertisement.
    Room,
    /// The advertisement comes too soon after the instance before it.
    TooSoon,
}

impl Refusal {
    /// Every reason, with the name of its counter.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::Truncated, "link_state_refused_truncated"),
        (Self::Version, "link_state_refused_version"),
        (Self::Type, "link_state_refused_type"),
        (Self::Checksum, "link_state_refused_checksum"),
        (Self::Destination, "link_state_refused_destination"),
        (Self::Sender, "link_state_refused_sender"),
        (Self::Area, "link_state_refused_area"),
        (Self::Timers, "link_state_refused_timers"),
        (Self::Stranger, "link_state_refused_stranger"),
        (Self::Identifier, "link_state_refused_identifier"),
        (Self::Advertisement, "link_state_refused_advertisement"),
        (Self::Neighbours, "link_state_refused_neighbours"),
        (Self::Room, "link_state_refused_room"),
        (Self::TooSoon, "link_state_refused_too_soon"),
    ];
}

impl From<Malformed> for Refusal {
    fn from(_: Malformed) -> Self {
        Self::Truncated
    }
}

impl From<Unfit> for Refusal {
    fn from(reason: Unfit) -> Self {
        match reason {
            Unfit::Truncated => Self::Truncated,
            Unfit::Destination => Self::Destination,
            Unfit::Sender => Self::Sender,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_place_and_a_name_of_its_own() {
        let mut names = std::collections::BTreeSet::new();
        for (place, (reason, name)) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{name}");
            assert!(names.insert(name));
        }
    }
}
