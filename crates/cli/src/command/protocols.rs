//! `hopcast protocols`: the names for `over` in a scenario.

use hopcast_stack::TRANSPORTS;

use crate::{Failure, output};

pub(crate) fn list() -> Result<(), Failure> {
    let rows: Vec<[String; 4]> = TRANSPORTS
        .iter()
        .map(|row| {
            let (offers, needs) = (row.offers.to_string(), row.needs.to_string());
            [row.name.to_owned(), offers, needs, row.about.to_owned()]
        })
        .collect();
    let titles = ["name", "offers", "needs", "about"].map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().chain([&titles]).map(|row| row[column].len());
        cells.max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [name, offers, needs, about] in [&titles].into_iter().chain(&rows) {
        let [first, second, third] = widths;
        text.push_str(&format!("{name:<first$}  {offers:<second$}  {needs:<third$}  {about}\n"));
    }
    text.push_str("\nA stack is written from the top down: over: [tcp-cubic, tunnel, udp]\n");
    output::write(text)
}
