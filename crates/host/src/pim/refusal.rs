//! Reasons why a packet of PIM is dropped.

use crate::link_message::Unfit;

/// The reason why a packet of PIM, or an entry of one, is dropped, of which each is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The bytes are no packet of IP, or not all of the message is there.
    Truncated,
    /// The message is of another version than 2.
    Version,
    /// The message is of a type that source trees do not need: of shared trees, or of dense mode.
    Type,
    /// The checksum does not fit the message.
    Checksum,
    /// Bytes follow the message, or an option is longer than its value.
    Trailing,
    /// It was not sent to the routers of the link.
    Destination,
    /// Its source is no address of a router on the link.
    Sender,
    /// An address is of another family than the packet, or encoded in an unknown way.
    Family,
    /// A group or source is a prefix, and not one address.
    Mask,
    /// A group is no address of a group beyond the link.
    Group,
    /// An address in a list is that of no host, or the list is too long.
    Listed,
    /// The sender of a message other than a Hello has not said Hello.
    Stranger,
    /// A join or prune of a shared tree, or an Assert for one.
    SharedTree,
    /// There is no room for another neighbour on the link.
    Neighbours,
    /// There is no room for another source and group.
    Routes,
}

impl Refusal {
    /// Every reason, with the name of its counter.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::Truncated, "pim_refused_truncated"),
        (Self::Version, "pim_refused_version"),
        (Self::Type, "pim_refused_type"),
        (Self::Checksum, "pim_refused_checksum"),
        (Self::Trailing, "pim_refused_trailing"),
        (Self::Destination, "pim_refused_destination"),
        (Self::Sender, "pim_refused_sender"),
        (Self::Family, "pim_refused_family"),
        (Self::Mask, "pim_refused_mask"),
        (Self::Group, "pim_refused_group"),
        (Self::Listed, "pim_refused_listed"),
        (Self::Stranger, "pim_refused_stranger"),
        (Self::SharedTree, "pim_refused_shared_tree"),
        (Self::Neighbours, "pim_refused_neighbours"),
        (Self::Routes, "pim_refused_routes"),
    ];
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
