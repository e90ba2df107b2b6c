//! The errors of a network: services that cannot be placed, and prefixes that segments cannot have.

use std::net::IpAddr;

use hopcast_host::Prefix;

use super::{LinkId, NodeId, SegmentPrefix};
use crate::service::AttachError;

/// A service cannot be placed on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct ServiceError {
    /// Its place among the network's services.
    pub service: usize,
    /// The node.
    pub node: NodeId,
    /// The cause.
    pub cause: PlacementError,
}

/// The cause why a service cannot be placed on a node, as a part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// It cannot be attached to these interfaces, whoever has them.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A host has at most one service of each kind.
    #[error("`{kind}` runs there already, as `{other}`")]
    RunsAlready {
        /// The kind of service.
        kind: &'static str,
        /// The name of the one that runs.
        other: String,
    },
    /// The node has no such interface.
    #[error("there is no interface or link `{wanted}`{hint} (interfaces: {known})")]
    NoSuchInterface {
        /// The name of an interface or link.
        wanted: String,
        /// The nearest right name, as a part of a sentence; empty if none is near.
        hint: String,
        /// The interfaces that there are, each with its link.
        known: String,
    },
    /// An option names an interface that none of the service's nodes has; the cause is that of the first.
    #[error("`{key}`: {cause}")]
    Named {
        /// The option.
        key: &'static str,
        /// The cause at one node.
        cause: Box<Self>,
    },
    /// An interface is wanted twice.
    #[error("`{0}` is listed twice")]
    ListedTwice(String),
    /// Another service is attached to the interface.
    #[error("the interface `{0}` has another service on it already")]
    Taken(String),
    /// A mesh would be below a mesh.
    #[error(
        "the interface `{0}` is a mesh's, which no other mesh can use: packets would be in two headers of one kind"
    )]
    MeshOnMesh(String),
    /// An event would change the interfaces, which stay as they are.
    #[error("an event cannot change the interfaces that a service makes, nor their prefixes")]
    OtherInterfaces,
    /// Frames would have more tags than fit.
    #[error("`{interface}` would bear {tags} tags; at most {max} are allowed")]
    TooManyTags {
        /// The interface's name.
        interface: String,
        /// Number of tags.
        tags: usize,
        /// Maximum number of tags.
        max: usize,
    },
    /// The node has an interface of this name.
    #[error("there is an interface `{0}` already")]
    NameTaken(String),
    /// The services of the network make too many interfaces.
    #[error("services make at most {0} interfaces, these more")]
    TooManyInterfaces(usize),
    /// Bridges join too many VLANs on too many links.
    #[error("bridges join at most {0} VLANs of links, these more; give their ports fewer VLANs")]
    TooManyPlaces(usize),
}

/// A prefix that a segment cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct PrefixError {
    /// The prefix, and where it is written.
    pub given: SegmentPrefix,
    /// The segment's link.
    pub link: LinkId,
    /// The cause.
    pub cause: PrefixCause,
}

/// The cause why a segment cannot have a prefix, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixCause {
    /// The segment has another one of this version of IP.
    #[error("`{segment}` has {first} already, and one prefix of each version of IP")]
    SecondOfVersion {
        /// The segment's name.
        segment: String,
        /// The prefix that it has.
        first: Prefix,
    },
    /// Hosts cannot have such addresses.
    #[error("{prefix} is no prefix for hosts: {reserved} {about}")]
    Reserved {
        /// The prefix.
        prefix: Prefix,
        /// The reserved prefix that it overlaps.
        reserved: Prefix,
        /// The use of that, with its source.
        about: &'static str,
    },
    /// It has fewer addresses than the segment has hosts.
    #[error("{prefix} has {room} addresses for hosts, and `{segment}` has {hosts} stations")]
    TooSmall {
        /// The prefix.
        prefix: Prefix,
        /// Number of its addresses for hosts.
        room: u64,
        /// The segment's name.
        segment: String,
        /// Number of its hosts.
        hosts: u64,
    },
    /// A node's own address is within.
    #[error("{prefix} has {own}, the address that `{node}` has on all of its links")]
    HasOwnAddress {
        /// The prefix.
        prefix: Prefix,
        /// The node's own address.
        own: IpAddr,
        /// The node's name.
        node: String,
    },
    /// Some stations of the segment do not hear each other.
    #[error("not all stations of `{0}` hear each other, and a prefix says that each reaches all others")]
    PartlyHeard(String),
    /// It overlaps that of another segment.
    #[error("{prefix} overlaps {other} of `{segment}`")]
    Overlaps {
        /// The prefix.
        prefix: Prefix,
        /// The other segment's prefix.
        other: Prefix,
        /// The other segment's name.
        segment: String,
    },
}
