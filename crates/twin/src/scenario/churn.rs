//! Churn: nodes that join a group and leave it at random times.

use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields};
use hopcast_config::yaml::Node;
use hopcast_core::{Duration, Instant, Stream};

use super::events::MAX_CHANGES;
use super::frequency::frequency;
use super::model::NodeId;
use super::topology::Topology;

/// A join or leave of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: Instant,
    pub(super) node: NodeId,
    pub(super) joins: bool,
}

/// Reads the `churn` of a group with these `members` from the beginning: changes at the times of a Poisson process,
/// each of a node that is drawn evenly, which leaves if it is a member and joins if it is none.
pub(super) fn churn(
    node: &Node,
    members: &[NodeId],
    (topology, duration): (&Topology, Duration),
    random: &mut Stream,
) -> Result<Vec<Step>, Diagnostic> {
    let fields = Fields::of(node, "`churn`", &["among", "rate", "from", "until"])?;
    let among = topology.node_list(fields.need("among", "among: [n1, n2]")?, "among")?;
    if among.is_empty() {
        return Err(node.error("`among`: expected at least one node"));
    }
    let mean = frequency(fields.need("rate", "rate: 1 /s")?, "rate")?;
    let time = |node: &Node, key: &str| Ok(Instant::ZERO + decode::duration(node, key)?);
    let from = fields.read("from", time)?.unwrap_or(Instant::ZERO);
    let end = Instant::ZERO + duration;
    let until = fields.read("until", time)?.unwrap_or(end).min(end);
    if from >= until {
        return Err(node.error(format!(
            "`churn`: nothing is from {} to {}",
            from.since(Instant::ZERO),
            until.since(Instant::ZERO)
        )));
    }
    let mut is_member: Vec<bool> = among.iter().map(|node| members.contains(node)).collect();
    let mut steps = Vec::new();
    let mut at = from;
    loop {
        // No two are at one time, at which leaves come before joins.
        at += mean.mul_f64(random.exponential()).max(Duration::from_nanos(1));
        if at >= until {
            return Ok(steps);
        }
        if steps.len() >= MAX_CHANGES {
            return Err(
                node.error(format!("churn comes to at most {MAX_CHANGES} joins and leaves, this to more"))
            );
        }
        let place = random.below(among.len() as u64) as usize;
        is_member[place] = !is_member[place];
        steps.push(Step { at, node: among[place], joins: is_member[place] });
    }
}
