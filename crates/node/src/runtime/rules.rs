//! Rules of netfilter and of routing that lead packets of other programs and hosts to this process.

use super::claim::Claim;
use super::command::{ip, run};
use super::error::{CommandError, PlugError};

/// An nft table, and a routing table with the rule that leads marked packets to it, both numbered by a [`Claim`]. They
/// are removed when this is dropped; those of a killed process, by `daemon::sweep` or by the next one with its number.
#[derive(Debug)]
pub(super) struct Rules {
    /// Commands that remove them, in the order in which the rules were made: programs and their arguments.
    undo: Vec<(&'static str, String)>,
    /// Their number; it is released after the rules.
    claim: Claim,
}

impl Rules {
    /// No rules yet.
    pub(super) fn claim() -> Result<Self, PlugError> {
        Ok(Self { undo: Vec::new(), claim: Claim::first_free()? })
    }

    /// The claim that numbers them.
    pub(super) const fn named(&self) -> &Claim {
        &self.claim
    }

    /// Makes the nft table, whose text names it as the claim does.
    pub(super) fn filter(&mut self, table: &str) -> Result<(), CommandError> {
        self.table("inet", table)
    }

    /// The same for a table of frames at their interface, whatever is in them.
    pub(super) fn filter_frames(&mut self, table: &str) -> Result<(), CommandError> {
        self.table("netdev", table)
    }

    fn table(&mut self, family: &str, table: &str) -> Result<(), CommandError> {
        let undo = format!("delete table {family} {}", self.claim.table());
        // A killed node with the same number may have left one.
        let _ = run("nft", &undo, "");
        self.undo.push(("nft", undo));
        self.fill(table)
    }

    /// Adds to the nft table.
    pub(super) fn fill(&self, table: &str) -> Result<(), CommandError> {
        run("nft", "-f -", table).map(drop)
    }

    /// Adds a route to the routing table, of IP version `-4` or `-6`.
    pub(super) fn route(&mut self, version: &str, what: &str) -> Result<(), CommandError> {
        let mark = self.claim.mark();
        self.both(
            [&format!("{version} route add"), &format!("{version} route del")],
            &format!("{what} table {mark}"),
        )
    }

    /// Adds the routing rule that leads packets with the claim's mark to the routing table of the same number.
    pub(super) fn route_marked(&mut self, version: &str) -> Result<(), CommandError> {
        let mark = self.claim.mark();
        let rule = [&*format!("{version} rule add"), &format!("{version} rule del")];
        self.both(rule, &format!("fwmark {mark} lookup {mark}"))
    }

    /// Notes that all routes of the routing table are to be removed in the end, those added elsewhere too.
    pub(super) fn flush_in_the_end(&mut self, version: &str) {
        self.undo.push(("ip", format!("{version} route flush table {}", self.claim.mark())));
    }

    fn both(&mut self, [make, unmake]: [&str; 2], what: &str) -> Result<(), CommandError> {
        let undo = format!("{unmake} {what}");
        let _ = ip(&undo);
        ip(&format!("{make} {what}"))?;
        self.undo.push(("ip", undo));
        Ok(())
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        for (program, line) in self.undo.drain(..).rev() {
            // Another program may have removed it.
            let _ = run(program, &line, "");
        }
    }
}
