//! Stories for people and for programs: text, JSON, a summary of all drops, and marks on a drawing of the network.

mod json;
mod marks;
mod summary;
mod text;

pub use json::{story_json, summary_json};
pub use marks::{Marks, marks, marks_of_packets};
pub use summary::{DropCount, Summary, summary};
pub use text::{story_text, summary_text};
