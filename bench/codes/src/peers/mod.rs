//! Other libraries that one would pick instead, each behind the same few operations and as its own documentation uses
//! it.

pub(crate) mod raptorq;
pub(crate) mod reed_solomon;
pub(crate) mod rlnc;
pub(crate) mod simdx;
