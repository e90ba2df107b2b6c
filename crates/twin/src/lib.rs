//! The twin: scenarios, the virtual-time engine, workloads, measurements and results.

pub mod results;
pub mod scenario;
