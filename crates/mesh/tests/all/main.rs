//! Tests of meshes in virtual time, in one program.

mod arp_table;
mod batman_v;
mod batman_v_hostile;
mod bridge_loops;
mod common;
mod gateways;
mod hostile;
mod interfaces;
mod multicast;
mod multicast_auto;
mod routing;
mod table;
