//! Numbers of a column with their points below each other.

use crate::grid::Cell;

/// Stands for the colour of the best while a table is laid out: it has no width, and no name can hold it.
pub(crate) const BEST: char = '\u{2060}';
/// Stands for the end of a colour, likewise.
pub(crate) const PLAIN: char = '\u{2061}';

/// What numbers are padded with so that their points stand below each other.
pub(crate) struct Padding {
    pub(crate) digit: char,
    pub(crate) point: char,
}

impl Padding {
    pub(crate) const TERMINAL: Self = Self { digit: ' ', point: ' ' };
    /// Spaces as wide as a digit and as a point.
    pub(crate) const PAGE: Self = Self { digit: '\u{2007}', point: '\u{2008}' };
}

/// The numbers of a column, all of one width, points below each other; `marks` adds a place for the marks.
pub(crate) fn align(cells: &[&Cell], intervals: bool, marks: bool, padding: &Padding) -> Vec<String> {
    let means =
        Decimals::of(cells.iter().filter(|cell| cell.is_figure()).filter_map(|cell| cell.text.as_deref()));
    let cis = Decimals::of(cells.iter().filter_map(|cell| cell.ci95.as_deref()).filter(|_| intervals));
    let has_cis = cis.whole > 0;
    let room = cells.iter().map(|cell| mark(cell, marks, intervals).chars().count()).max().unwrap_or(0);
    let blank = |count: usize| padding.digit.to_string().repeat(count);
    let one = |cell: &&Cell| {
        let text = cell.text.as_deref().unwrap_or("–");
        let mut out = format!("{text}{}", means.after(text, padding));
        match cell.ci95.as_deref().filter(|_| intervals) {
            Some(ci) => {
                let before = blank(cis.whole - whole(ci));
                out.push_str(&format!(" ± {before}{ci}{}", cis.after(ci, padding)));
            }
            None if has_cis => out.push_str(&blank(3 + cis.whole + cis.fraction)),
            None => {}
        }
        let mark = mark(cell, marks, intervals);
        let rest = blank(room - mark.chars().count());
        if cell.best && marks {
            format!("{BEST}{out}{mark}{PLAIN}{rest}")
        } else {
            format!("{out}{mark}{rest}")
        }
    };
    cells.iter().map(one).collect()
}

fn mark(cell: &Cell, best: bool, intervals: bool) -> String {
    let marks = [(cell.best && best, '*'), (cell.partial, '†'), (cell.unsure && intervals, '‡')];
    let marks: String = marks.into_iter().filter(|(holds, _)| *holds).map(|(_, mark)| mark).collect();
    if marks.is_empty() { marks } else { format!(" {marks}") }
}

/// How much room the numbers of a column need on either side of their points.
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

    /// What a number is followed by so that its point stands below the others.
    fn after(&self, text: &str, padding: &Padding) -> String {
        let missing = self.fraction.saturating_sub(fraction(text));
        let digits = |count: usize| padding.digit.to_string().repeat(count);
        if fraction(text) == 0 && missing > 0 {
            format!("{}{}", padding.point, digits(missing - 1))
        } else {
            digits(missing)
        }
    }
}

fn whole(text: &str) -> usize {
    text.chars().take_while(|c| *c != '.').count()
}

/// The point and what follows it.
fn fraction(text: &str) -> usize {
    text.chars().count() - whole(text)
}
