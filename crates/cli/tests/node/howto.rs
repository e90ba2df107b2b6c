//! The how-to of docs/node.md, word for word.

use crate::lab::{Lab, possible, repository};

/// The blocks of the how-to that are fenced as `kind`.
fn blocks(kind: &str) -> Vec<String> {
    let page = repository("docs/node.md");
    let start = page.find("## Ten lines").expect("the how-to");
    let end = start + 3 + page[start + 3..].find("\n## ").expect("what follows it");
    let mut blocks = Vec::new();
    for piece in page[start..end].split("```").skip(1).step_by(2) {
        if let Some(block) = piece.strip_prefix(kind) {
            blocks.push(block.trim().to_owned());
        }
    }
    blocks
}

#[test]
fn ten_lines_make_a_tunnel_of_two_fresh_machines() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["harbour", "island"]);
    lab.lose("harbour", 10);
    lab.lose("island", 10);
    let files = blocks("yaml");
    assert_eq!(files.len(), 2);
    let lines: usize = files.iter().map(|file| file.lines().count() + 1).sum();
    assert_eq!(lines, 10, "four of a file and a command on each machine");
    let nodes = [lab.node("harbour", &files[0]), lab.node("island", &files[1])];
    nodes.iter().for_each(|node| node.is_up());
    let commands = blocks("sh");
    let ping = commands.iter().flat_map(|block| block.lines()).find(|line| line.starts_with("ping"));
    lab.run("harbour", ping.expect("a line that tries it"));
    // Without repairs it would be 81 of 100.
    let ping = lab.run("harbour", "ping -q -c 100 -i 0.02 -W 2 10.77.0.2");
    let received: u32 = ping.split(" received").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(received >= 96, "{ping}");

    let status =
        lab.run("harbour", &format!("{} node status --socket harbour.sock", env!("CARGO_BIN_EXE_hopcast")));
    assert!(status.starts_with("harbour at "), "{status}");
    let row = status.lines().find(|line| line.starts_with("island ")).expect("a row of the peer");
    assert_eq!(row.split_whitespace().nth(1), Some("up"), "{status}");
    assert!(status.contains("to island"), "{status}");
    let json = lab.run(
        "harbour",
        &format!("{} node status --socket harbour.sock --json", env!("CARGO_BIN_EXE_hopcast")),
    );
    assert!(json.contains("\"packets_repair\""), "{json}");
}
