//! Colours, light and dark.
//!
//! The lines have the hues of Okabe and Ito's palette, darkened for the light theme and lightened for the dark one
//! until each has a contrast of 3 : 1 (WCAG 2.1, 1.4.11); dashes and marks distinguish them too.

use std::fmt::Write as _;

/// Number of colours of lines. Eight lines differ in colour; the next eight have the same colours with other dashes.
pub(crate) const COLOURS: usize = 8;
/// Number of dash patterns of lines.
pub(crate) const DASHES: usize = 4;
/// Number of steps of utilisation that look different.
pub(crate) const LOADS: usize = 5;

struct Theme {
    text: &'static str,
    muted: &'static str,
    grid: &'static str,
    surface: &'static str,
    lines: [&'static str; COLOURS],
    loads: [&'static str; LOADS],
}

const LIGHT: Theme = Theme {
    text: "#1b1f24",
    muted: "#5b6470",
    grid: "#e3e6ea",
    surface: "#ffffff",
    lines: ["#0072b2", "#c85200", "#00805f", "#b0508a", "#9a6a00", "#2f8fc4", "#555b63", "#7a7400"],
    loads: ["#b9c3cf", "#8fb4d4", "#5897c6", "#2273ad", "#0a4a7c"],
};

const DARK: Theme = Theme {
    text: "#e8eaed",
    muted: "#9aa4b0",
    grid: "#2d333b",
    surface: "#171b21",
    lines: ["#4fa8e6", "#f28a45", "#35c79b", "#e291c2", "#f0b534", "#9bd6ff", "#c4c9d0", "#e6da52"],
    loads: ["#46505c", "#3f6585", "#3f86b8", "#62aee4", "#a8d8ff"],
};

const DASH_ARRAYS: [&str; DASHES] = ["none", "70 40", "20 35", "110 35 20 35"];

/// The colour and the dash pattern of a line: no two of the first [`COLOURS`] x [`DASHES`] lines share both.
pub(crate) const fn look(line: usize) -> (usize, usize) {
    let colour = line % COLOURS;
    (colour, (line + line / COLOURS) % DASHES)
}

/// The style of the plots, for a page or a standalone file.
pub(crate) fn style() -> String {
    let mut css = String::from(
        ".plot text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
         font-variant-numeric:tabular-nums;paint-order:stroke;stroke-width:35;stroke-linejoin:round}\
         .plot polyline{stroke-linejoin:round;stroke-linecap:butt}\n",
    );
    for colour in 0..COLOURS {
        for (pattern, dashes) in DASH_ARRAYS.iter().enumerate() {
            let _ = write!(css, ".l-d{}{{stroke-dasharray:{dashes}}}", colour * DASHES + pattern);
        }
    }
    css.push('\n');
    css.push_str(&rules(&LIGHT));
    let _ = write!(css, "@media screen and (prefers-color-scheme:dark){{\n{}}}\n", rules(&DARK));
    css
}

fn rules(theme: &Theme) -> String {
    // Text has an outline in the background's colour, so that it is readable across a line.
    let mut css = format!(".plot text{{stroke:{}}}", theme.surface);
    let roles =
        [("text", theme.text), ("muted", theme.muted), ("grid", theme.grid), ("surface", theme.surface)];
    for (role, colour) in roles {
        let _ = write!(css, ".l-{role}{{stroke:{colour}}}.f-{role}{{fill:{colour}}}");
    }
    for (line, colour) in theme.lines.iter().enumerate() {
        let dashed: String = (0..DASHES).fold(String::new(), |mut all, pattern| {
            let _ = write!(all, ",.l-d{}", line * DASHES + pattern);
            all
        });
        let _ = write!(css, ".l-s{line}{dashed}{{stroke:{colour}}}.f-s{line}{{fill:{colour}}}");
    }
    for (step, colour) in theme.loads.iter().enumerate() {
        let _ = write!(css, ".l-u{step}{{stroke:{colour}}}.f-u{step}{{fill:{colour}}}");
    }
    css.push('\n');
    css
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn thirty_two_lines_look_different() {
        let looks: BTreeSet<_> = (0..COLOURS * DASHES).map(look).collect();
        assert_eq!(looks.len(), 32);
    }
}
