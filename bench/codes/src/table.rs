//! From races to lines, and from lines to the question whether it is good enough.

use comfy_table::{CellAlignment, LineStyle, Table as Grid, TableStyle};
use serde::Serialize;

use crate::anchors::BLOCKED;
use crate::race::Race;

/// The blocked kernel's rate on the machine for which the absolute figures are meant (Zen 4 with GFNI and AVX-512).
pub(crate) const BLOCKED_THERE: f64 = 228.0;

/// One operation at every size.
#[derive(Serialize)]
pub(crate) struct Study {
    pub(crate) operation: &'static str,
    /// The unit of the rates.
    pub(crate) unit: &'static str,
    pub(crate) note: &'static str,
    pub(crate) requirements: Vec<Requirement>,
    pub(crate) lines: Vec<Line>,
}

/// A size, or a kernel, and what was measured there. The first contender is ours.
#[derive(Serialize)]
pub(crate) struct Line {
    pub(crate) len: usize,
    pub(crate) subject: Subject,
    /// GB/s.
    pub(crate) hopcast: f64,
    /// The share of the blocked kernel's rate, divided by the terms that each byte needs.
    pub(crate) ceiling: Option<f64>,
    /// Our rate as a share of the blocked kernel's.
    #[serde(skip)]
    of_blocked: Option<f64>,
    pub(crate) peers: Vec<Peer>,
}

#[derive(Copy, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// A generation or a session of this number of symbols.
    K(usize),
    /// The same, with a way to begin.
    Start {
        k: usize,
        name: &'static str,
    },
    Kernel {
        name: &'static str,
        best: bool,
    },
}

#[derive(Serialize)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// GB/s.
    pub(crate) rate: f64,
    /// Ours as a multiple of it.
    pub(crate) ratio: f64,
}

/// Requirement on an operation.
#[derive(Serialize)]
pub(crate) struct Requirement {
    pub(crate) level: Level,
    pub(crate) against: Against,
    pub(crate) at_least: f64,
    /// The k for which it stands.
    pub(crate) only: Only,
}

#[derive(Copy, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    Must,
    Goal,
}

#[derive(Copy, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Against {
    Peer(&'static str),
    /// GB/s on the machine of [`BLOCKED_THERE`].
    Rate,
    Ceiling,
    /// Not a matter of speed: a test of hopcast-code holds it.
    Test(&'static str),
}

#[derive(Copy, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Only {
    All,
    From(usize),
    At(usize),
}

/// Result of a requirement where it fared worst.
#[derive(Serialize)]
pub(crate) struct Verdict {
    operation: &'static str,
    level: Level,
    wanted: String,
    /// Nothing if it was not measured ..
    worst: Option<Worst>,
    /// .. and then why.
    otherwise: &'static str,
}

#[derive(Serialize)]
struct Worst {
    /// In the requirement's terms.
    measure: f64,
    /// GB/s of ours, as measured.
    hopcast: f64,
    at: String,
    met: bool,
    /// Whether that is what another machine would do, as far as one can tell from this one.
    scaled: bool,
}

impl Line {
    /// The line of a race whose first contender is ours. `terms` is how many terms of the blocked kernel each byte
    /// needs at least.
    pub(crate) fn new(len: usize, subject: Subject, race: &Race, terms: Option<f64>) -> Self {
        let blocked = race.names().iter().position(|&name| name == BLOCKED);
        let of_blocked = blocked.map(|blocked| race.ratio(0, blocked));
        let peers = (1..race.names().len())
            .filter(|&i| Some(i) != blocked)
            .map(|i| Peer { name: race.names()[i], rate: race.rate(i), ratio: race.ratio(0, i) })
            .collect();
        let ceiling = of_blocked.zip(terms).map(|(share, terms)| share * terms);
        Self { len, subject, hopcast: race.rate(0), ceiling, of_blocked, peers }
    }

    /// Figure that the requirement is about, or `None` where it does not stand.
    fn measure(&self, requirement: &Requirement, like_there: bool) -> Option<f64> {
        let stands = match (self.subject, requirement.only) {
            (Subject::Kernel { best, .. }, _) => best,
            (_, Only::All) => true,
            (Subject::K(k) | Subject::Start { k, .. }, Only::From(min)) => k >= min,
            (Subject::K(k) | Subject::Start { k, .. }, Only::At(only)) => k == only,
        };
        let measure = match requirement.against {
            Against::Peer(name) => self.peers.iter().find(|peer| peer.name == name).map(|peer| peer.ratio),
            Against::Rate if like_there => Some(self.hopcast),
            Against::Rate => self.of_blocked.map(|share| share * BLOCKED_THERE),
            Against::Ceiling => self.ceiling,
            Against::Test(_) => None,
        };
        measure.filter(|_| stands)
    }
}

impl Study {
    /// Result of each requirement. Unless the machine is `like_there`, rates are scaled by what its kernel can do.
    pub(crate) fn verdicts(&self, like_there: bool) -> Vec<Verdict> {
        let verdict = |requirement: &Requirement| {
            let measures =
                self.lines.iter().filter_map(|line| Some((line.measure(requirement, like_there)?, line)));
            let worst = measures.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(measure, line)| Worst {
                measure,
                hopcast: line.hopcast,
                at: match line.subject {
                    Subject::Kernel { name, .. } => format!("{name}, {} bytes", line.len),
                    subject => format!("k = {subject}, {} bytes", line.len),
                },
                met: requirement.is_met(measure),
                scaled: requirement.is_scaled(like_there),
            });
            Verdict {
                operation: self.operation,
                level: requirement.level,
                wanted: requirement.to_string(),
                worst,
                otherwise: match requirement.against {
                    Against::Test(_) => "held by tests of hopcast-code",
                    _ => "NOT MEASURED HERE",
                },
            }
        };
        self.requirements.iter().map(verdict).collect()
    }

    pub(crate) fn print(&self, like_there: bool) {
        println!("\n{} ({})\n{}", self.operation, self.unit, self.note);
        let mut grid = grid();
        let Some(first) = self.lines.first() else { return };
        let subject = if matches!(first.subject, Subject::Kernel { .. }) { "kernel" } else { "k" };
        let has_ceiling = first.ceiling.is_some();
        let mut header = vec!["bytes", subject, "hopcast"];
        header.extend(has_ceiling.then_some("of ceiling"));
        header.extend(first.peers.iter().flat_map(|peer| [peer.name, "ratio"]));
        header.extend(["must", "goal"]);
        grid.set_header(header);
        for line in &self.lines {
            let mut cells = vec![line.len.to_string(), line.subject.to_string(), figure(line.hopcast)];
            cells.extend(line.ceiling.map(|share| format!("{:.0} %", 100.0 * share)));
            cells.extend(
                line.peers.iter().flat_map(|peer| [figure(peer.rate), format!("x {}", figure(peer.ratio))]),
            );
            cells.extend([Level::Must, Level::Goal].map(|level| self.met(line, level, like_there)));
            grid.add_row(cells);
        }
        align(&mut grid, 2);
        println!("{grid}");
    }

    /// Whether a line meets all requirements of a level that stand there.
    fn met(&self, line: &Line, level: Level, like_there: bool) -> String {
        let (mut met, mut scaled) = (None, false);
        for requirement in self.requirements.iter().filter(|requirement| requirement.level == level) {
            if let Some(measure) = line.measure(requirement, like_there) {
                met = Some(met.unwrap_or(true) && requirement.is_met(measure));
                scaled |= requirement.is_scaled(like_there);
            }
        }
        met.map_or("", |met| answer(met, scaled)).into()
    }
}

/// Every requirement, where it fared worst.
pub(crate) fn print_verdicts(verdicts: &[Verdict]) {
    let mut grid = grid();
    grid.set_header(["operation", "", "wanted", "worst", "measured", "there", "met"]);
    for verdict in verdicts {
        let [measure, hopcast, at, met] = match &verdict.worst {
            Some(worst) => [
                figure(worst.measure),
                format!("{} GB/s", figure(worst.hopcast)),
                worst.at.clone(),
                answer(worst.met, worst.scaled).into(),
            ],
            None => ["", "", verdict.otherwise, ""].map(Into::into),
        };
        let level = if verdict.level == Level::Must { "must" } else { "goal" };
        grid.add_row([verdict.operation, level, &verdict.wanted, &measure, &hopcast, &at, &met]);
    }
    println!("{grid}");
}

impl Requirement {
    pub(crate) fn new(level: Level, against: Against, at_least: f64) -> Self {
        Self { level, against, at_least, only: Only::All }
    }

    pub(crate) fn only(self, only: Only) -> Self {
        Self { only, ..self }
    }

    fn is_scaled(&self, like_there: bool) -> bool {
        matches!(self.against, Against::Rate) && !like_there
    }

    /// As the table would print it: a figure that reads 3.00 is 3.
    fn is_met(&self, measure: f64) -> bool {
        measure >= self.at_least - 0.005
    }
}

impl std::fmt::Display for Requirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.against {
            Against::Peer(name) => write!(f, "{} x {name}", self.at_least)?,
            Against::Rate => write!(f, "{} GB/s", self.at_least)?,
            Against::Ceiling => write!(f, "{} of the ceiling", self.at_least)?,
            Against::Test(what) => f.write_str(what)?,
        }
        match self.only {
            Only::All => Ok(()),
            Only::From(k) => write!(f, ", k >= {k}"),
            Only::At(k) => write!(f, ", k = {k}"),
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::K(k) => write!(f, "{k}"),
            Self::Start { k, name } => write!(f, "{k}, {name}"),
            Self::Kernel { name, .. } => f.write_str(name),
        }
    }
}

fn grid() -> Grid {
    let mut grid = Grid::new();
    grid.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    grid
}

const fn answer(met: bool, scaled: bool) -> &'static str {
    match (met, scaled) {
        (true, false) => "yes",
        (false, false) => "NO",
        (true, true) => "scaled, yes",
        (false, true) => "scaled, NO",
    }
}

/// Figures are read from the right.
fn align(grid: &mut Grid, from: usize) {
    for column in grid.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Three digits, as far as they mean anything.
fn figure(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
