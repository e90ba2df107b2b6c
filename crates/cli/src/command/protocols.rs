//! `hopcast protocols`: the names for `over` in a scenario.

use hopcast_stack::TRANSPORTS;
use hopcast_stack::transport::Row;

use crate::failure::Failure;
use crate::output;

pub(crate) fn list() -> Result<(), Failure> {
    let titles = ["name", "offers", "needs", "receivers", "routes", "world", "about"].map(str::to_owned);
    let cells = |row: &&Row| {
        let (offers, needs) = (row.offers.to_string(), row.needs.to_string());
        let (receivers, paths, worlds) =
            (row.receivers.to_string(), row.paths.to_string(), row.worlds.to_string());
        [row.name.to_owned(), offers, needs, receivers, paths, worlds, row.about.to_owned()]
    };
    let rows: Vec<[String; 7]> = std::iter::once(titles).chain(TRANSPORTS.iter().map(cells)).collect();
    let mut text = String::new();
    for row in &rows {
        let (about, cells) = row.split_last().expect("a row has cells");
        for (column, cell) in cells.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
            text.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(&format!("{about}\n"));
    }
    text.push_str("\nA stack is written from the top down: over: [tcp-cubic, tunnel, udp]\n");
    output::write(text)
}
