//! The places at which interfaces are attached to a link.

/// The number of an attachment of a link, from 0.
pub type Attachment = usize;
