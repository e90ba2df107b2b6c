//! Services of a node that stand between its links and its host and carry frames.
//!
//! | module | what |
//! |---|---|
//! | [`vlan`] | interfaces of VLANs on another interface: their frames are tagged |

pub mod vlan;

pub use vlan::Vlan;
