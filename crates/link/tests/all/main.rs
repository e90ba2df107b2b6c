//! Tests of links, in one program.

mod bianchi;
mod changes;
mod codel;
mod common;
mod conservation;
mod counters;
mod csma;
mod dcf;
mod delay;
mod duplex;
mod hidden;
mod impairments;
mod lines;
mod loss;
mod medium;
mod queue;
mod radios;
mod rate;
mod status;
mod switch;
mod trace;
mod when_woken;
