//! The summary as a table for a terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use hopcast_twin::results::Document;

use crate::align::{BEST, PLAIN, Padding, align};
use crate::grid::{Cell, Column, Grid, PUBLISHED_ASIDE, Row};
use crate::live;
use crate::study::Study;

/// Options of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Width of the terminal, in columns; `None` for no limit.
    pub width: Option<u16>,
    /// Whether to use ANSI colours, which add no information.
    pub color: bool,
}

/// The summary, one row for each case and flow, with a line below that explains its marks and names the columns left
/// out for lack of width. Ends with a line break.
pub fn render(document: &Document, options: TableOptions) -> String {
    if document.summary.is_empty() {
        let notes = live::machine(document).into_iter().map(|note| format!(" {note}\n"));
        let nothing = format!("no results{}\n", if document.interrupted { ": interrupted" } else { "" });
        return std::iter::once(nothing).chain(notes).collect();
    }
    let study = Study::new(document);
    let grid = Grid::new(&study);
    let (text, shown) = fit(&grid, options.width);
    let mut notes = notes(document, &grid, &shown);
    notes.extend(live::machine(document));
    notes.extend(live::reasons(&study));
    let mut out = text;
    out.push('\n');
    for note in notes {
        for line in wrap(&note, options.width) {
            out.push_str(&paint(&format!("{DIM}{line}{PLAIN}"), options.color));
            out.push('\n');
        }
    }
    paint(&out, options.color)
}

/// Placeholder for the colour of notes, while the table is laid out, like [`BEST`].
const DIM: char = '\u{2062}';

fn paint(text: &str, color: bool) -> String {
    let code = |stand_in: char| match stand_in {
        BEST => Some("\u{1b}[1;32m"),
        DIM => Some("\u{1b}[2m"),
        PLAIN => Some("\u{1b}[0m"),
        _ => None,
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match code(c) {
            Some(code) if color => out.push_str(code),
            Some(_) => {}
            None => out.push(c),
        }
    }
    out
}

/// The figures that are shown with intervals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intervals {
    All,
    Goodput,
    None,
}

/// The contents of a laid-out table.
struct Shown {
    columns: Vec<bool>,
    intervals: Intervals,
}

impl Shown {
    fn has_intervals(&self, grid: &Grid, column: usize) -> bool {
        match self.intervals {
            Intervals::All => true,
            Intervals::Goodput => grid.columns[column].rank == 0,
            Intervals::None => false,
        }
    }
}

/// Minimum width for published figures other than goodput, in columns. Chosen: in narrower tables they would displace
/// our own figures.
const ROOMY: usize = 140;

/// Lays the grid out, and leaves out the least important columns until it fits.
fn fit(grid: &Grid, width: Option<u16>) -> (String, Shown) {
    let limit = width.map_or(usize::MAX, usize::from);
    let columns = grid.columns.iter().map(|column| limit >= ROOMY || column.rank < PUBLISHED_ASIDE).collect();
    let mut shown = Shown { columns, intervals: Intervals::All };
    let mut name_length = usize::MAX;
    loop {
        let text = lay_out(grid, &shown, name_length);
        let widest = text.lines().map(visible_width).max().unwrap_or(0);
        if widest <= limit {
            return (text, shown);
        }
        let least = (0..grid.columns.len())
            .filter(|column| shown.columns[*column] && grid.columns[*column].rank > 0)
            .max_by_key(|column| (grid.columns[*column].rank, *column));
        if shown.intervals == Intervals::All {
            shown.intervals = Intervals::Goodput;
        } else if let Some(least) = least {
            shown.columns[least] = false;
        } else if name_length > 24 {
            name_length = 24;
        } else if name_length <= 12 && shown.intervals == Intervals::Goodput {
            shown.intervals = Intervals::None;
        } else if name_length > 6 {
            name_length -= 1;
        } else {
            return (text, shown);
        }
    }
}

fn visible_width(line: &str) -> usize {
    line.chars().filter(|c| !matches!(*c, BEST | DIM | PLAIN)).count()
}

fn lay_out(grid: &Grid, shown: &Shown, name_length: usize) -> String {
    let columns: Vec<usize> = (0..grid.columns.len()).filter(|column| shown.columns[*column]).collect();
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header(columns.iter().map(|column| {
        let Column { title, numeric, .. } = &grid.columns[*column];
        let unit = grid.columns[*column].unit();
        let length = if *numeric { usize::MAX } else { name_length };
        format!("{}\n{unit}", clip(title, length))
    }));
    let marks = grid.marks();
    let texts: Vec<Vec<String>> = columns
        .iter()
        .map(|column| {
            let cells: Vec<&Cell> = grid.rows.iter().map(|row| &row.cells[*column]).collect();
            let intervals = shown.has_intervals(grid, *column);
            if grid.columns[*column].numeric {
                align(&cells, intervals, marks, Padding::Terminal)
            } else {
                cells.iter().map(|cell| clip(cell.text.as_deref().unwrap_or("–"), name_length)).collect()
            }
        })
        .collect();
    for (index, row) in grid.rows.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &grid.rows[before]);
        let repeated = |column: usize| before.is_some_and(|before| repeats(grid, before, row, column));
        table.add_row(
            columns
                .iter()
                .zip(&texts)
                .map(|(column, texts)| if repeated(*column) { String::new() } else { texts[index].clone() }),
        );
    }
    for (place, column) in columns.iter().enumerate() {
        let Some(laid_out) = table.column_mut(place) else { continue };
        if grid.columns[*column].numeric {
            laid_out.set_cell_alignment(CellAlignment::Right);
        }
        laid_out.set_padding((1, 1));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Whether a leading name equals that of the row before, and is left blank.
fn repeats(grid: &Grid, before: &Row, row: &Row, column: usize) -> bool {
    before.group == row.group
        && grid.columns[column].rank == 0
        && (0..=column).all(|column| {
            before.cells[column].text == row.cells[column].text
                && row.cells[column].ci95.is_none()
                && !row.cells[column].is_figure()
        })
}

/// A name without control characters, and no longer than this.
pub(crate) fn clip(name: &str, length: usize) -> String {
    let hidden = |c: &char| {
        c.is_control()
            || matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    let name: String = name.chars().filter(|c| !hidden(c)).collect();
    if name.chars().count() <= length {
        return name;
    }
    name.chars().take(length.saturating_sub(1)).chain(['…']).collect()
}

fn notes(document: &Document, grid: &Grid, shown: &Shown) -> Vec<String> {
    let mut notes = Vec::new();
    let mut legend = Vec::new();
    if grid.marks() {
        legend.push(format!("* best{}", grid.scope));
    }
    if grid.intervals() && shown.intervals != Intervals::None {
        legend.push("± 95 % confidence interval over repeats".into());
    }
    if grid.partial() {
        legend.push("† mean of the repeats that have this figure".into());
    }
    let agreed = |column: usize| grid.rows.iter().any(|row| row.cells[column].agreed);
    let with_intervals = |column: &usize| shown.columns[*column] && shown.has_intervals(grid, *column);
    if (0..grid.columns.len()).filter(with_intervals).any(agreed) {
        legend.push("without ±: all repeats gave the same".into());
    }
    if !legend.is_empty() {
        notes.push(legend.join("; "));
    }
    let mut left_out: Vec<String> = grid
        .columns
        .iter()
        .zip(&shown.columns)
        .filter(|(_, shown)| !**shown)
        .map(|(column, _)| column.name.clone())
        .collect();
    let intervals = grid.intervals().then_some(shown.intervals);
    match intervals {
        Some(Intervals::Goodput) => left_out.push("± beside figures other than goodput".into()),
        Some(Intervals::None) => left_out.push("±".into()),
        Some(Intervals::All) | None => {}
    }
    if !left_out.is_empty() {
        notes.push(format!("left out for want of width: {}", left_out.join(", ")));
    }
    notes.extend(document.remarks.iter().cloned());
    notes.extend(host_drops(document));
    if document.interrupted {
        notes.push("interrupted: not all that was asked for was run".into());
    }
    notes
}

/// Messages for the counters of packets that hosts dropped.
const HOST_DROPS: [(&str, &str); 7] = [
    ("no_route", "no route"),
    ("hop_limit_exceeded", "hop limit used up"),
    ("too_big", "larger than the MTU"),
    ("closed_port", "nobody at the port"),
    ("checksum_errors", "checksum wrong"),
    ("malformed", "malformed"),
    ("unsendable", "not sendable"),
];

/// The reasons why hosts, and not links, dropped packets; `None` if they did not.
fn host_drops(document: &Document) -> Option<String> {
    let sum = |counter| -> u64 { document.runs.iter().filter_map(|run| run.hosts.get(counter)).sum() };
    let drops = HOST_DROPS.map(|(counter, words)| (sum(counter), words));
    let drops: Vec<String> = drops
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    (!drops.is_empty()).then(|| format!("packets that hosts dropped, over all runs: {}", drops.join(", ")))
}

fn wrap(text: &str, width: Option<u16>) -> Vec<String> {
    let limit = width.map_or(usize::MAX, usize::from);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > limit.saturating_sub(1) {
            lines.push(std::mem::take(&mut line));
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push(line);
    lines
}
