//! The JSON Schema of the scenario format, for editors. The decoder is authoritative; `tests/schema.rs` compares the
//! schema with it.

/// The schema, as `hopcast schema` prints it: JSON Schema, draft 2020-12.
pub const SCHEMA: &str = include_str!("../../../../docs/scenario.schema.json");
