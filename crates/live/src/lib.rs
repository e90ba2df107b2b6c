//! Scenarios on the kernel: namespaces, links over TAP, real programs.

pub mod capture;
pub mod doctor;
pub mod emulator;
pub mod lab;
pub mod layout;
pub mod leftovers;
pub mod network;
pub mod privileges;
pub mod programs;
mod punctual;
pub mod run;
pub mod worker;
