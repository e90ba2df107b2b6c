//! Services of a node that stand between its links and its host and carry frames.
//!
//! | module | what |
//! |---|---|
//! | [`bridge`] | a learning bridge, with VLANs and snooping of IGMP and MLD |
//! | [`vlan`] | interfaces of VLANs on another interface: their frames are tagged |

pub mod bridge;
pub mod vlan;

pub use bridge::Bridge;
pub use vlan::Vlan;
