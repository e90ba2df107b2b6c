//! The legend of a map, which is the same for all its moments.

use super::flows::Flows;
use super::frame::FAINT;
use super::marks::{self, Arrow};
use crate::plot::canvas::{Anchor, Canvas, Ink, Point, clipped, text_width};

/// Length of a line in the legend, in pixels.
const KEY: f64 = 26.0;

/// The sign before a legend's text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Key {
    /// A link of this step and width.
    Link { step: usize, width: f64 },
    /// The way of the flow with this index.
    Flow(usize),
    /// The end of a way that does not arrive.
    NoRoute,
    /// A track that was sailed, or is to come.
    Track(Ink),
    /// A ship of this radius.
    Ship { radius: f64, on_track: bool },
    /// Text alone.
    Words,
}

/// Entries with one title.
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) entries: Vec<(Key, String)>,
}

/// The places of a legend's texts and keys.
pub(super) struct Legend {
    titles: Vec<(&'static str, Point)>,
    entries: Vec<(Key, String, Point)>,
    pub(super) height: f64,
}

impl Legend {
    /// Groups one behind the other, where a row has room for them.
    pub(super) fn of(groups: Vec<Group>, width: f64, font: f64) -> Self {
        let (gap, line) = (14.0, font * 1.75);
        let mut legend = Self { titles: Vec::new(), entries: Vec::new(), height: 0.0 };
        let (mut x, mut y): (f64, f64) = (0.0, font);
        for group in groups.into_iter().filter(|group| !group.entries.is_empty()) {
            let room = |key: Key| if key == Key::Words { 0.0 } else { KEY + 5.0 };
            let entries: Vec<(Key, String)> = group
                .entries
                .into_iter()
                .map(|(key, text)| (key, clipped(&text, width - room(key) - gap, font)))
                .collect();
            let needed = |(key, text): &(Key, String)| room(*key) + text_width(text, font) + gap;
            let heading = text_width(group.title, font) + gap;
            let whole: f64 = heading + entries.iter().map(needed).sum::<f64>();
            if x > 0.0 && x + whole > width {
                (x, y) = (0.0, y + line);
            } else if x > 0.0 {
                x += gap;
            }
            legend.titles.push((group.title, (x, y)));
            x += heading;
            for entry in entries {
                let needed = needed(&entry);
                if x > 0.0 && x + needed - gap > width {
                    (x, y) = (0.0, y + line);
                }
                legend.entries.push((entry.0, entry.1, (x, y)));
                x += needed;
            }
        }
        legend.height = if legend.entries.is_empty() { 0.0 } else { y + font };
        legend
    }

    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, top: f64) {
        let font = canvas.font;
        for (title, (x, y)) in &self.titles {
            canvas.text(title, (*x, top + y), Anchor::Start, Ink::Text, font);
        }
        for (key, text, (x, y)) in &self.entries {
            let (from, to) = ((*x, top + y), (x + KEY, top + y));
            let middle = (x + KEY / 2.0, top + y);
            match *key {
                Key::Link { step, width } => canvas.path(&[from, to], Ink::Load(step), width),
                Key::Flow(flow) => {
                    Arrow::draw_all(&[Arrow { from, to, look: Flows::look(flow), width: 2.6 }], canvas);
                }
                Key::NoRoute => marks::cross(canvas, middle, Ink::Text, 4.5),
                Key::Track(Ink::Grid) => canvas.path(&[from, to], Ink::Grid, 1.4 * FAINT),
                Key::Track(ink) => canvas.path(&[from, to], ink, 1.4),
                Key::Ship { radius, on_track } => marks::ship(canvas, middle, 90.0, radius, on_track),
                Key::Words => {}
            }
            let x = if *key == Key::Words { *x } else { to.0 + 5.0 };
            canvas.text(text, (x, top + y), Anchor::Start, Ink::Muted, font);
        }
    }
}
