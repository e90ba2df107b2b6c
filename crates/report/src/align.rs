//! Alignment of numbers in a column by their decimal points.

use crate::grid::Cell;

/// Placeholder for the colour of the best, while a table is laid out: it has no width, and no name can contain it.
pub(crate) const BEST: char = '\u{2060}';
/// Placeholder for the end of a colour.
pub(crate) const PLAIN: char = '\u{2061}';

/// Begin of text that a page lays out but does not show.
pub(crate) const HIDDEN: char = '\u{2063}';
/// End of such text.
pub(crate) const SHOWN: char = '\u{2064}';

/// Padding that puts decimal points below each other.
#[derive(Clone, Copy)]
pub(crate) enum Padding {
    /// Spaces.
    Terminal,
    /// The missing characters, hidden: they have the same width in any font.
    Page,
}

impl Padding {
    fn instead_of(self, text: &str) -> String {
        match self {
            _ if text.is_empty() => String::new(),
            Self::Terminal => " ".repeat(text.chars().count()),
            Self::Page => format!("{HIDDEN}{text}{SHOWN}"),
        }
    }
}

/// The numbers of a column, padded to one width and aligned by their points; `marks` adds room for the marks.
pub(crate) fn align(cells: &[&Cell], intervals: bool, marks: bool, padding: Padding) -> Vec<String> {
    let means =
        Decimals::of(cells.iter().filter(|cell| cell.is_figure()).filter_map(|cell| cell.text.as_deref()));
    let cis = Decimals::of(cells.iter().filter_map(|cell| cell.ci95.as_deref()).filter(|_| intervals));
    // The text between a mean and its marks has this width.
    let interval = match cis.whole {
        0 => String::new(),
        whole => format!(" ± {}{}", "0".repeat(whole), cis.widest_fraction()),
    };
    let interval_of = |cell: &Cell| cell.ci95.clone().filter(|_| intervals);
    let mark_of = |cell: &Cell| mark(cell, marks);
    let longest = |with_interval: bool| {
        let cells = cells.iter().filter(|cell| interval_of(cell).is_some() == with_interval);
        cells.map(|cell| mark_of(cell)).max_by_key(|mark| mark.chars().count()).unwrap_or_default()
    };
    // Marks are behind the interval, or in its place.
    let mut room = interval + &longest(true);
    room.extend(longest(false).chars().skip(room.chars().count()));
    let one = |cell: &&Cell| {
        let text = cell.text.as_deref().unwrap_or("–");
        let mut out = format!("{text}{}", means.after(text, padding));
        let mark = mark_of(cell);
        let mut rest = room.clone();
        if let Some(ci) = interval_of(cell) {
            let before = padding.instead_of(&"0".repeat(cis.whole - whole(&ci)));
            out.push_str(&format!(" ± {before}{ci}{}", cis.after(&ci, padding)));
            rest = room.chars().skip(3 + cis.whole + cis.fraction + mark.chars().count()).collect();
        } else if matches!(padding, Padding::Terminal) {
            rest = room.chars().skip(mark.chars().count()).collect();
        }
        let rest = padding.instead_of(&rest);
        if cell.best && marks {
            format!("{BEST}{out}{mark}{PLAIN}{rest}")
        } else {
            format!("{out}{mark}{rest}")
        }
    };
    cells.iter().map(one).collect()
}

/// The marks of a cell with a space before them, if it has any. On a page, marks in the place of an interval take no
/// room.
pub(crate) fn mark(cell: &Cell, best: bool) -> String {
    let marks = [(cell.best && best, '*'), (cell.partial, '†')];
    let marks: String = marks.into_iter().filter(|(holds, _)| *holds).map(|(_, mark)| mark).collect();
    if marks.is_empty() { marks } else { format!(" {marks}") }
}

/// The maximum widths of a column's numbers on either side of their points.
struct Decimals {
    whole: usize,
    fraction: usize,
}

impl Decimals {
    fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        texts.fold(Self { whole: 0, fraction: 0 }, |most, text| Self {
            whole: most.whole.max(whole(text)),
            fraction: most.fraction.max(fraction(text)),
        })
    }

    /// A point and digits with the width of the longest fraction.
    fn widest_fraction(&self) -> String {
        if self.fraction > 0 { format!(".{}", "0".repeat(self.fraction - 1)) } else { String::new() }
    }

    /// The padding after a number that aligns its point with the others.
    fn after(&self, text: &str, padding: Padding) -> String {
        let rest: String = self.widest_fraction().chars().skip(fraction(text)).collect();
        padding.instead_of(&rest)
    }
}

fn whole(text: &str) -> usize {
    text.chars().take_while(|c| *c != '.').count()
}

/// Length of the fraction, with its point.
fn fraction(text: &str) -> usize {
    text.chars().count() - whole(text)
}
