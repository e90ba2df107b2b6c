//! Tests of ships and their radios, in one program.

mod beams;
mod budget;
mod common;
mod fleet;
mod maritime;
mod position;
mod propagation;
mod traces;
mod track;
