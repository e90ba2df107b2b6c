//! Drawing with roles instead of colours.
//!
//! plotters' SVG backend has whole coordinates and fixed colours. So a canvas draws at ten times its size, and with
//! placeholder colours, which then become CSS classes for the light and the dark theme.

use std::fmt::Write as _;

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle, TextStyle,
};

use super::theme;

pub(crate) type Point = (f64, f64);

/// The role of a stroke or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Text,
    Muted,
    Grid,
    Surface,
    /// A line of the plot.
    Line(usize),
    /// A line of the plot, with its dash pattern.
    Dashed(usize),
    /// A link's utilisation, in steps of a fifth.
    Load(usize),
}

/// The point of a text that is at the given position.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Number of coordinates per pixel.
const SUBPIXELS: f64 = 10.0;
/// Number of shapes of marks.
const SHAPES: usize = 6;
/// Margin around a standalone picture, in pixels. Chosen: the height of a line of text.
const MARGIN: f64 = 16.0;

pub(crate) struct Canvas<'s> {
    backend: SVGBackend<'s>,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The size of ordinary text.
    pub(crate) font: f64,
}

/// An SVG element of this size; `name` is its description for screen readers.
pub(crate) fn draw(
    width: f64,
    height: f64,
    font: f64,
    name: &str,
    paint: impl FnOnce(&mut Canvas<'_>),
) -> String {
    let mut svg = String::new();
    let backend =
        SVGBackend::with_string(&mut svg, ((width * SUBPIXELS) as u32, (height * SUBPIXELS) as u32));
    let mut canvas = Canvas { backend, width, height, font };
    canvas.area(&[(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)], Ink::Surface, 1.0);
    paint(&mut canvas);
    canvas.backend.present().expect("drawing into a string cannot fail");
    drop(canvas);
    finish(&svg, width, height, name)
}

impl Canvas<'_> {
    pub(crate) fn path(&mut self, points: &[Point], ink: Ink, width: f64) {
        let points = points.iter().map(|point| fine(*point));
        self.backend.draw_path(points, &stroke(ink, width)).expect("drawing into a string cannot fail");
    }

    pub(crate) fn area(&mut self, points: &[Point], ink: Ink, opacity: f64) {
        let style = ShapeStyle { color: placeholder(ink).mix(opacity), filled: true, stroke_width: 0 };
        let points = points.iter().map(|point| fine(*point));
        self.backend.fill_polygon(points, &style).expect("drawing into a string cannot fail");
    }

    pub(crate) fn circle(&mut self, centre: Point, radius: f64, ink: Ink, hollow: Option<f64>) {
        let style = stroke(ink, hollow.unwrap_or(0.0));
        let radius = (radius * SUBPIXELS) as u32;
        self.backend
            .draw_circle(fine(centre), radius, &style, hollow.is_none())
            .expect("drawing into a string cannot fail");
    }

    /// The mark of a line, filled or hollow; neighbouring lines have different shapes.
    pub(crate) fn mark(&mut self, centre: Point, line: usize, size: f64, hollow: bool) {
        let ink = Ink::Line(line);
        let corners: &[Point] = match line % SHAPES {
            0 => return self.circle(centre, size, ink, hollow.then_some(1.6)),
            1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
            3 => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            4 => &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
            _ => &[(0.0, -1.2), (1.2, -0.3), (0.7, 1.1), (-0.7, 1.1), (-1.2, -0.3)],
        };
        let mut points: Vec<Point> =
            corners.iter().map(|(x, y)| (centre.0 + x * size, centre.1 + y * size)).collect();
        if hollow {
            points.extend([points[0], points[1]]);
            self.path(&points, ink, 1.6);
        } else {
            self.area(&points, ink, 1.0);
        }
    }

    /// Text with its vertical middle at this place.
    pub(crate) fn text(&mut self, text: &str, at: Point, anchor: Anchor, ink: Ink, size: f64) {
        let horizontal = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        // The backend divides the size by 1.24, a correction for bitmaps.
        let font = ("sans-serif", size * SUBPIXELS * 1.24).into_font().style(FontStyle::Normal);
        let color = placeholder(ink);
        let style = TextStyle::from(font.transform(FontTransform::None))
            .color(&color)
            .pos(Pos::new(horizontal, VPos::Center));
        let text: String = text.chars().map(|c| if is_xml(c) { c } else { '\u{fffd}' }).collect();
        self.backend.draw_text(&text, &style, fine(at)).expect("drawing into a string cannot fail");
    }
}

/// Approximate width of a text.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | '|' | '\'' | '(' | ')' | ' ' | 't' | 'f' | '·' => 0.33,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
        '<' | '>' | '+' | '=' | '±' => 0.84,
        c if c.is_ascii_uppercase() => 0.68,
        c if c.is_ascii() => 0.6,
        _ => 0.8,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// A text cut to about this width.
pub(crate) fn clipped(text: &str, width: f64, size: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if text_width(&out, size) + 1.4 * size > width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

/// Whether XML 1.0 allows a character.
fn is_xml(c: char) -> bool {
    !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if is_xml(c) => out.push(c),
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

fn fine((x, y): Point) -> (i32, i32) {
    ((x * SUBPIXELS).round() as i32, (y * SUBPIXELS).round() as i32)
}

fn stroke(ink: Ink, width: f64) -> ShapeStyle {
    ShapeStyle { color: placeholder(ink), filled: false, stroke_width: (width * SUBPIXELS) as u32 }
}

/// Red 1 marks a placeholder; green and blue identify the role.
fn placeholder(ink: Ink) -> RGBAColor {
    let (kind, index) = match ink {
        Ink::Text => (0, 0),
        Ink::Muted => (0, 1),
        Ink::Grid => (0, 2),
        Ink::Surface => (0, 3),
        Ink::Line(line) => (1, theme::look(line).0),
        Ink::Dashed(line) => {
            let (colour, dashes) = theme::look(line);
            (2, colour * theme::DASHES + dashes)
        }
        Ink::Load(step) => (3, step.min(theme::LOADS - 1)),
    };
    RGBColor(1, kind, index as u8).to_rgba()
}

fn class(kind: u8, index: u8) -> String {
    match (kind, index) {
        (0, 0) => "text".into(),
        (0, 1) => "muted".into(),
        (0, 2) => "grid".into(),
        (0, _) => "surface".into(),
        (1, line) => format!("s{line}"),
        (2, line) => format!("d{line}"),
        (_, step) => format!("u{step}"),
    }
}

/// Replaces the placeholders by classes (`l-` for strokes, `f-` for fills), and the fixed size by a flexible one.
fn finish(svg: &str, width: f64, height: f64, name: &str) -> String {
    let mut out = String::with_capacity(svg.len());
    let name = escape(name);
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {} {}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{name}\">\n<title>{name}</title>",
        width * SUBPIXELS,
        height * SUBPIXELS
    );
    // Quotes in user text are escaped, so an attribute in the body is the backend's.
    let body = body.replace(" opacity=\"1\"", "").replace(" font-family=\"sans-serif\"", "");
    let body = body.replace(" font-style=\"normal\"", "").replace(" \"/>", "\"/>");
    let body = rounded_sizes(&body);
    let mut rest = body.as_str();
    while let Some(at) = rest.find("=\"#01") {
        let (before, after) = rest.split_at(at);
        let digits = |range| u8::from_str_radix(after.get(range).unwrap_or("0"), 16).unwrap_or(0);
        let class = class(digits(5..7), digits(7..9));
        let (kept, attribute) = before.rsplit_once(' ').unwrap_or((before, ""));
        let prefix = if attribute == "stroke" { "l" } else { "f" };
        let _ = write!(out, "{kept} class=\"{prefix}-{class}\"");
        rest = after.get(10..).unwrap_or("");
    }
    out + rest
}

/// A document of an element that [`draw`] made, with this style and a margin.
pub(crate) fn standalone(svg: &str, style: &str) -> String {
    let size = |name: &str| {
        let value = svg.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
        value.and_then(|(value, _)| value.parse::<f64>().ok()).unwrap_or(0.0)
    };
    let (width, height) = (size("width") + 2.0 * MARGIN, size("height") + 2.0 * MARGIN);
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let label =
        svg.split_once(" role=").and_then(|(_, rest)| rest.split_once('>')).map_or("", |(label, _)| label);
    let corner = -MARGIN * SUBPIXELS;
    let (wide, high) = (width * SUBPIXELS, height * SUBPIXELS);
    let surface = format!(
        "</title>\n<style>\n{style}</style>\n\
         <rect class=\"f-surface\" x=\"{corner}\" y=\"{corner}\" width=\"{wide}\" height=\"{high}\"/>"
    );
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" \
         viewBox=\"{corner} {corner} {wide} {high}\" width=\"{width}\" height=\"{height}\" role={label}>{}",
        body.replacen("</title>", &surface, 1)
    )
}

/// Font sizes without the digits of rounding errors.
fn rounded_sizes(svg: &str) -> String {
    let mut parts = svg.split(" font-size=\"");
    let mut out = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (size, rest) = part.split_once('"').unwrap_or((part, ""));
        let _ = write!(out, " font-size=\"{:.0}\"{rest}", size.parse::<f64>().unwrap_or(SUBPIXELS * 12.0));
    }
    out
}
