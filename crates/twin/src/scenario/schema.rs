//! The JSON Schema of the scenario format, for editors. The decoder is the law; `tests/schema.rs` holds the schema to
//! it.

/// The schema, as `hopcast schema` prints it: JSON Schema, draft 2020-12.
pub const SCHEMA: &str = include_str!("../../../../docs/scenario.schema.json");
