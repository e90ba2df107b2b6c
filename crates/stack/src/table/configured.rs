//! A row of one of the tables, with the settings that a file gives it.

use std::fmt;
use std::sync::Arc;

/// A row of a table.
pub trait TableRow: 'static {
    /// Its name in files.
    fn name(&self) -> &'static str;
}

/// A row of a table with its settings.
pub struct Configured<R: TableRow, S: ?Sized> {
    row: &'static R,
    settings: Arc<S>,
    /// The options that are not the default, each as `name value`.
    changed: Vec<String>,
}

impl<R: TableRow, S: ?Sized> Configured<R, S> {
    /// A row with settings that have been read, of which the options in `changed` are not the default.
    pub(crate) const fn new(row: &'static R, settings: Arc<S>, changed: Vec<String>) -> Self {
        Self { row, settings, changed }
    }

    /// Its row of the table.
    pub const fn row(&self) -> &'static R {
        self.row
    }

    /// Its settings.
    pub fn settings(&self) -> &S {
        &self.settings
    }

    /// Replaces its settings; the options that are shown stay those that were chosen.
    pub(crate) fn set(&mut self, settings: Arc<S>) {
        self.settings = settings;
    }
}

impl<R: TableRow, S: ?Sized> Clone for Configured<R, S> {
    fn clone(&self) -> Self {
        Self { row: self.row, settings: self.settings.clone(), changed: self.changed.clone() }
    }
}

/// The name, with the options that are not the default.
impl<R: TableRow, S: ?Sized> fmt::Display for Configured<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changed.is_empty() {
            f.write_str(self.row.name())
        } else {
            write!(f, "{} ({})", self.row.name(), self.changed.join(", "))
        }
    }
}

/// The name and all settings: a run is recognised by them.
impl<R: TableRow, S: ?Sized + fmt::Debug> fmt::Debug for Configured<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.row.name(), &*self.settings)
    }
}

/// Two are equal if their names and all of their settings are.
impl<R: TableRow, S: ?Sized + fmt::Debug> PartialEq for Configured<R, S> {
    fn eq(&self, other: &Self) -> bool {
        self.row.name() == other.row.name() && format!("{self:?}") == format!("{other:?}")
    }
}
