//! Scenarios on the kernel: namespaces, links over TAP, real programs.

pub mod capture;
pub mod doctor;
pub mod emulator;
pub mod lab;
pub mod layout;
pub mod network;
pub mod privileges;
pub mod programs;
pub mod run;
mod wakeups;
pub mod worker;

pub use lab::leftovers;
