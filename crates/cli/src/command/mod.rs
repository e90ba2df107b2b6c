//! The commands, one a file.

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod link_budget;
pub(crate) mod node;
pub(crate) mod probe;
pub(crate) mod protocols;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod study;
pub(crate) mod trace;
pub(crate) mod worker;
