//! A table that the reader can sort.

use std::fmt::Write as _;

use crate::plot::canvas::escape;

/// A column's title and unit, and whether it holds numbers.
pub(super) struct Column {
    pub(super) title: String,
    pub(super) unit: &'static str,
    pub(super) numeric: bool,
}

impl Column {
    pub(super) fn name(title: &str) -> Self {
        Self { title: title.into(), unit: "", numeric: false }
    }

    pub(super) fn number(title: &str, unit: &'static str) -> Self {
        Self { title: title.into(), unit, numeric: true }
    }
}

/// Columns and rows; `None` for an empty cell. Empty columns are left out.
pub(super) struct Sheet {
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    /// Each with whether it begins a new group.
    pub(super) rows: Vec<(bool, Vec<Option<String>>)>,
}

impl Sheet {
    pub(super) fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let filled = |place: usize| self.rows.iter().any(|(_, cells)| cells[place].is_some());
        let shown: Vec<usize> = (0..self.columns.len()).filter(|place| filled(*place)).collect();
        let caption = escape(&self.caption);
        let mut out = format!(
            "<h3>{caption}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\
             <table class=\"sortable\">\n<thead><tr>"
        );
        for Column { title, unit, numeric } in shown.iter().map(|place| &self.columns[*place]) {
            let class = if *numeric { " class=\"number\"" } else { "" };
            let unit = if unit.is_empty() { String::new() } else { format!("<br><span>[{unit}]</span>") };
            let _ = write!(out, "<th scope=\"col\"{class}>{}{unit}</th>", escape(title));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for (first, cells) in &self.rows {
            out.push_str(if *first { "<tr class=\"group\">" } else { "<tr>" });
            for place in &shown {
                let class = if self.columns[*place].numeric { " class=\"number\"" } else { "" };
                let _ = write!(out, "<td{class}>{}</td>", escape(cells[*place].as_deref().unwrap_or("–")));
            }
            out.push_str("</tr>\n");
        }
        out + "</tbody></table></div>\n"
    }
}
