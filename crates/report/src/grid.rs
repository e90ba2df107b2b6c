//! The summary in rows and columns, for the terminal and the page.

use hopcast_twin::results::{Document, Mean, Summary};

use crate::figure::{Better, MEASURES, Measure, agrees, figure, interval, measure_of, repeats};
use crate::number;
use crate::study::{CARRIED, Order, Study, distinct, value};

/// One row for each case and flow.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// The group among which the best is marked: `of each loss`.
    pub(crate) scope: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// Its title outside of the table.
    pub(crate) name: String,
    pub(crate) unit: String,
    /// Where space is short, columns of the highest rank are dropped first; those of rank 0 stay.
    pub(crate) rank: u8,
    pub(crate) numeric: bool,
    /// Whether the unit is part of the heading, without brackets.
    pub(crate) plain_unit: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Rows of one group are compared with each other.
    pub(crate) group: usize,
    pub(crate) cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// A name or a mean; `None` for an empty cell.
    pub(crate) text: Option<String>,
    /// Half the width of the 95 % interval.
    pub(crate) ci95: Option<String>,
    pub(crate) best: bool,
    /// Whether some repeats do not have this figure.
    pub(crate) partial: bool,
    /// Whether it is the mean of several repeats that all agree.
    pub(crate) agreed: bool,
    value: Option<f64>,
}

impl Grid {
    pub(crate) fn new(study: &Study<'_>) -> Self {
        let summary = &study.document.summary;
        let groups = groups(study);
        let mut columns = Vec::new();
        let mut cells: Vec<Vec<Cell>> = Vec::new();
        let mut add = |column: Column, column_cells: Vec<Cell>| {
            if column_cells.iter().any(|cell| cell.text.is_some()) {
                columns.push(column);
                cells.push(column_cells);
            }
        };

        for (path, title) in study.varying.iter().zip(&study.names) {
            let numeric = study.axis.as_ref().is_some_and(|(axis, _)| axis == path);
            let cell = |row: &Summary| Cell::name(value(&row.parameters, path));
            add(Column { numeric, ..Column::text(title) }, summary.iter().map(cell).collect());
        }
        if study.flows.len() > 1 {
            let cells = summary.iter().map(|row| Cell::name(row.flow.clone())).collect();
            add(Column::text("flow"), cells);
        }
        if study.choosing.is_empty() {
            let cells = summary.iter().map(|row| Cell::name(row.protocol.clone())).collect();
            add(Column::text("protocol"), cells);
        }
        let mut published = published_names(summary);
        let all: Vec<u64> = summary.iter().map(repeats).collect();
        let contest = Contest::of(study, &groups);
        for measure in MEASURES {
            let mut cells: Vec<Cell> =
                summary.iter().map(|row| Cell::figure(measure, figure(row, measure.name))).collect();
            for ((cell, row), all) in cells.iter_mut().zip(summary).zip(&all) {
                cell.partial = figure(row, measure.name).is_some_and(|mean| mean.n < *all);
            }
            let eligible: Vec<bool> = (0..summary.len()).map(|row| contest.admits(row, measure)).collect();
            mark_best(&mut cells, &groups, &eligible, measure.better);
            add(Column::number(measure.title, measure.title.into(), measure.unit, measure.rank), cells);
            if let Some(at) = published.iter().position(|name| name == measure.name) {
                beside_published(study.document, &published.remove(at), &mut add);
            }
        }
        for name in published {
            beside_published(study.document, &name, &mut add);
        }

        let mut columns_of_cells: Vec<_> = cells.into_iter().map(Vec::into_iter).collect();
        let row = |group: usize| Row {
            group,
            cells: columns_of_cells.iter_mut().filter_map(Iterator::next).collect(),
        };
        let rows = groups.iter().copied().map(row).collect();
        Self { columns, rows, scope: scope(study) }
    }

    /// Whether a cell is marked as the best.
    pub(crate) fn marks(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.best)
    }

    /// Whether a cell is the mean of some repeats only.
    pub(crate) fn partial(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.partial)
    }

    /// Whether a cell has no interval because all repeats have the same value.
    pub(crate) fn agreed(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.agreed)
    }

    /// Whether a cell has an interval.
    pub(crate) fn intervals(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.ci95.is_some())
    }
}

impl Column {
    /// The unit in the heading.
    pub(crate) fn unit(&self) -> String {
        if self.unit.is_empty() || self.plain_unit { self.unit.clone() } else { format!("[{}]", self.unit) }
    }

    fn text(title: &str) -> Self {
        Self { numeric: false, ..Self::number(title, title.into(), "", 0) }
    }

    fn number(title: &str, name: String, unit: &str, rank: u8) -> Self {
        let (title, unit) = (title.into(), unit.into());
        Self { title, name, unit, rank, numeric: true, plain_unit: false }
    }
}

impl Cell {
    /// Whether this is a number rather than a name.
    pub(crate) fn is_figure(&self) -> bool {
        self.value.is_some()
    }

    fn name(text: String) -> Self {
        Self { text: (!text.is_empty()).then_some(text), ..Self::default() }
    }

    fn number(unit: &str, value: Option<f64>) -> Self {
        let format = if unit == "%" { number::percent } else { number::number };
        Self { text: value.map(format), value, ..Self::default() }
    }

    fn figure(measure: &Measure, mean: Option<Mean>) -> Self {
        let Some(mean) = mean else { return Self::default() };
        if measure.name == "hash_ok" {
            return Self::name(intact(mean));
        }
        let mut cell = Self::number(measure.unit, Some(mean.mean * measure.scale));
        cell.agreed = agrees(mean);
        if let (Some(text), Some(ci95)) = (&cell.text, interval(mean)) {
            cell.ci95 = Some(number::interval(text, ci95 * measure.scale));
        }
        cell
    }
}

/// `yes`, `no`, or the number of repeats with an intact file.
fn intact(share: Mean) -> String {
    if share.mean >= 1.0 {
        "yes".into()
    } else if share.mean <= 0.0 {
        "no".into()
    } else {
        format!("{:.0} of {}", share.mean * share.n as f64, share.n)
    }
}

/// Adds the published value of a figure, and the ratio of ours to it. They follow our column, so that their headings
/// need not name the figure.
fn beside_published(document: &Document, name: &str, add: &mut impl FnMut(Column, Vec<Cell>)) {
    let summary = document.summary.as_slice();
    let (whose, ours) = whose(document);
    let measure = measure_of(name);
    let (scale, unit) = measure.map_or((1.0, ""), |measure| (measure.scale, measure.unit));
    let goodput = name == "goodput_mbps";
    let of = match measure {
        _ if goodput => String::new(),
        Some(measure) => format!(" {}", measure.title),
        None => format!(" {name}"),
    };
    // A figure without a column of its own needs its name in the heading.
    let title = |short: &str| if measure.is_some() { short.to_owned() } else { format!("{short}{of}") };
    let ranks = if goodput { (1, 2) } else { (PUBLISHED_ASIDE, PUBLISHED_ASIDE) };

    let published = |row: &Summary| row.published.get(name).copied();
    let cells = summary.iter().map(|row| Cell::number(unit, published(row).map(|v| v * scale)));
    add(Column::number(&title(whose), format!("{whose}{of}"), unit, ranks.0), cells.collect());
    let ratio = |row: &Summary| {
        let ours = figure(row, name)?.mean;
        published(row).filter(|published| *published != 0.0).map(|published| ours / published)
    };
    let cells = summary.iter().map(|row| Cell::number("", ratio(row))).collect();
    let name = format!("{ours} ÷ {whose}{of}");
    add(
        Column { plain_unit: true, ..Column::number(&title(&format!("{ours} ÷")), name, whose, ranks.1) },
        cells,
    );
}

/// The headings of the figures beside ours, and of ours in the ratio.
pub(crate) fn whose(document: &Document) -> (&str, &'static str) {
    let live = document.runs.iter().any(|run| run.live.is_some());
    (document.beside.as_deref().unwrap_or("published"), if live { "live" } else { "ours" })
}

/// The rank of published figures other than goodput.
pub(crate) const PUBLISHED_ASIDE: u8 = 9;

/// The group of each row: the case and the flow, since flows have different tasks.
fn groups(study: &Study<'_>) -> Vec<usize> {
    let mut order = Order::of([]);
    study.rows.iter().map(|row| order.insert((row.case, row.summary.flow.as_str()))).collect()
}

/// The data that decides which rows can be the best of their group.
struct Contest<'d> {
    rows: Vec<&'d Summary>,
    /// The highest goodput and reliability in each row's group.
    best: Vec<[f64; 2]>,
    /// Whether each row's case has other flows.
    crowded: Vec<bool>,
}

impl<'d> Contest<'d> {
    fn of(study: &Study<'d>, groups: &[usize]) -> Self {
        let rows: Vec<&Summary> = study.rows.iter().map(|row| row.summary).collect();
        let mut highest = vec![[0.0f64; 2]; groups.iter().max().map_or(0, |last| last + 1)];
        for (row, group) in rows.iter().zip(groups) {
            for (place, highest) in highest[*group].iter_mut().enumerate() {
                *highest = highest.max(delivered(row)[place].unwrap_or(0.0));
            }
        }
        Self {
            best: groups.iter().map(|group| highest[*group]).collect(),
            crowded: rows.iter().map(|row| study.is_crowded(row)).collect(),
            rows,
        }
    }

    /// Whether a row can be the best by this figure. Where a case has several flows, none is the best by the amount
    /// that it carried, possibly at the expense of the others. And a short latency means nothing for a flow that
    /// carried hardly anything: the best latency is that of a row with at least half the highest goodput and half the
    /// highest reliability. Where links go down, what waits for them is late or never comes: there it is that of one
    /// with all but a hundredth of them.
    fn admits(&self, row: usize, measure: &Measure) -> bool {
        match measure.better {
            Better::High => !(self.crowded[row] && CARRIED.contains(&measure.name)),
            Better::Low => {
                let (row, best) = (self.rows[row], self.best[row]);
                let share = if figure(row, "reliability_bound").is_some() { 0.99 } else { 0.5 };
                let enough = |(own, best): (Option<f64>, f64)| own.is_none_or(|own| own >= best * share);
                delivered(row).into_iter().zip(best).all(enough)
            }
            Better::Neither => false,
        }
    }
}

/// A row's goodput and reliability.
fn delivered(row: &Summary) -> [Option<f64>; 2] {
    ["goodput_mbps", "reliability"].map(|name| figure(row, name).map(|mean| mean.mean))
}

/// Marks the best of each group among the eligible ones, and those that are shown as equal; none where all are equal.
fn mark_best(cells: &mut [Cell], groups: &[usize], eligible: &[bool], better: Better) {
    let worst_first = |a: f64, b: f64| match better {
        Better::Low => b.total_cmp(&a),
        Better::High | Better::Neither => a.total_cmp(&b),
    };
    if better == Better::Neither {
        return;
    }
    let count = groups.iter().max().map_or(0, |last| last + 1);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (row, group) in groups.iter().enumerate().filter(|(row, _)| cells[*row].value.is_some()) {
        members[*group].push(row);
    }
    for rows in members {
        let value = |row: &usize| cells[*row].value.unwrap_or(0.0);
        let can_be = rows.iter().filter(|row| eligible[**row]);
        let Some(best) = can_be.max_by(|a, b| worst_first(value(a), value(b))) else { continue };
        let text = cells[*best].text.clone();
        if rows.iter().all(|row| cells[*row].text == text) {
            continue;
        }
        for row in rows {
            cells[row].best = eligible[row] && cells[row].text == text;
        }
    }
}

fn published_names(summary: &[Summary]) -> Vec<String> {
    let mut names = distinct(summary.iter().flat_map(|row| row.published.keys().cloned()));
    names.sort_by_key(|name| (name != "goodput_mbps", name.clone()));
    names
}

fn scope(study: &Study<'_>) -> String {
    let conditions = study.conditions().map(|path| study.short_name(path));
    let conditions: Vec<&str> = conditions.chain((study.flows.len() > 1).then_some("flow")).collect();
    if conditions.is_empty() { String::new() } else { format!(" for each {}", conditions.join(" and ")) }
}
