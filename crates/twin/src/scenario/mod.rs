//! The scenario language.

pub mod model;
