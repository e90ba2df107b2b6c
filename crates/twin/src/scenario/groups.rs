//! Groups of receivers: their members, by the file and by events, and their delivery.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Seed};
use hopcast_stack::group::{DeliveryLayer, Group, LINGER, Members};
use hopcast_stack::{Variants, deliveries};

use super::churn::{Step, churn};
use super::events;
use super::model::{Action, Event, GroupId, NodeId};
use super::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, did_you_mean, list};
use hopcast_config::yaml::Node;

/// Maximum number of groups. Chosen: less than the addresses that the lowest 16 bits distinguish.
const MAX_GROUPS: usize = 60_000;

/// All groups, by name.
#[derive(Default)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<Group>,
    /// The joins and leaves of the file, in the order of time.
    pub(crate) events: Vec<Event>,
    names: BTreeMap<String, GroupId>,
    /// Number of joins and leaves of single nodes.
    changes: usize,
}

/// A join or leave in an event of the file.
struct Change<'n> {
    at: Instant,
    group: GroupId,
    nodes: Vec<NodeId>,
    joins: bool,
    node: &'n Node,
}

impl Groups {
    /// The groups of `groups`, with the joins and leaves of `events` and of each `churn`, which is drawn from a seed.
    pub(crate) fn of(
        node: Option<&Node>,
        events: Option<&Node>,
        topology: &Topology,
        variants: &Variants,
        (duration, seed): (Duration, u64),
    ) -> Result<Self, Diagnostic> {
        let mut groups = Self::default();
        let mut changes = Vec::new();
        for item in node.map(|node| list(node, "groups")).transpose()?.unwrap_or_default() {
            let group = groups.read(item, topology, variants)?;
            groups.churn(item, group, (topology, duration, seed), &mut changes)?;
        }
        for item in events.map(|node| list(node, "events")).transpose()?.unwrap_or_default() {
            groups.changes(item, (topology, duration), &mut changes)?;
        }
        // At one instant leaves come before joins.
        changes.sort_by_key(|change| (change.at, change.joins));
        for change in changes {
            groups.apply(change, topology)?;
        }
        Ok(groups)
    }

    fn read(&mut self, item: &Node, topology: &Topology, variants: &Variants) -> Result<GroupId, Diagnostic> {
        let fields = Fields::of(item, "a group", &["name", "members", "churn", "delivery", "linger"])?;
        let named = fields.need("name", "name: film")?;
        let name = decode::name(named, "name")?;
        if topology.has_node(name) {
            return Err(named.error(format!("a group needs a name of its own: `{name}` is a node")));
        }
        let members = match fields.get("members") {
            Some(node) => topology.node_list(node, "members")?,
            None => Vec::new(),
        };
        let delivery = match fields.get("delivery") {
            Some(node) => variants.delivery(node)?,
            None => deliveries::default_delivery(),
        };
        let linger = fields.read("linger", decode::duration)?.unwrap_or(LINGER);
        let number = self.add(name.to_owned(), &members, delivery, item)?;
        self.groups[number].linger = linger;
        if self.names.insert(name.to_owned(), number).is_some() {
            return Err(named.error(format!("the group name `{name}` is taken already")));
        }
        Ok(number)
    }

    /// Notes the joins and leaves of a group's churn, if it has any: the same in each repeat, as events are.
    fn churn<'n>(
        &mut self,
        item: &'n Node,
        group: GroupId,
        (topology, duration, seed): (&Topology, Duration, u64),
        changes: &mut Vec<Change<'n>>,
    ) -> Result<(), Diagnostic> {
        let Some(node) = item.get("churn") else { return Ok(()) };
        let Group { name, members, .. } = &self.groups[group];
        let members: Vec<NodeId> = members.iter().map(|member| member.node).collect();
        let mut random = Seed::new(seed, 0).stream(&["churn", name], 0);
        let steps = churn(node, &members, (topology, duration), &mut random)?;
        self.count(steps.len(), node)?;
        changes.extend(steps.into_iter().map(|Step { at, node: who, joins }| Change {
            at,
            group,
            nodes: vec![who],
            joins,
            node,
        }));
        Ok(())
    }

    /// Counts further joins and leaves, of which there is a maximum number.
    fn count(&mut self, more: usize, node: &Node) -> Result<(), Diagnostic> {
        self.changes += more;
        let limit = events::MAX_CHANGES;
        match self.changes > limit {
            true => {
                Err(node.error(format!("events come to at most {limit} joins and leaves, these to more")))
            }
            false => Ok(()),
        }
    }

    /// Adds a group with members from the start of the run.
    pub(crate) fn add(
        &mut self,
        name: String,
        members: &[NodeId],
        delivery: DeliveryLayer,
        place: &Node,
    ) -> Result<GroupId, Diagnostic> {
        let number = self.groups.len();
        if number >= MAX_GROUPS {
            return Err(place.error(format!("a scenario has at most {MAX_GROUPS} groups, this is one more")));
        }
        let members = Members::always(members);
        self.groups.push(Group { name, number, members, delivery, linger: LINGER });
        Ok(number)
    }

    /// The group of a name.
    pub(crate) fn find(&self, name: &str) -> Option<GroupId> {
        self.names.get(name).copied()
    }

    /// The names of all groups.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Notes the joins and leaves of an event, if it has any.
    fn changes<'n>(
        &mut self,
        item: &'n Node,
        (topology, duration): (&Topology, Duration),
        changes: &mut Vec<Change<'n>>,
    ) -> Result<(), Diagnostic> {
        let Some(named) = item.get("group") else { return Ok(()) };
        let fields = Fields::of(item, "an event", &events::ALLOWED)?;
        let times = events::times(fields, duration)?;
        let name = decode::text(named, "group")?;
        let Some(group) = self.find(name) else {
            let hint = did_you_mean(name, self.names());
            return Err(named.error(format!("`group`: there is no group `{name}`{hint}")));
        };
        let mut acts = false;
        for (key, joins) in [("leave", false), ("join", true)] {
            let Some(node) = fields.get(key) else { continue };
            events::one_or_several(node, key)?;
            let nodes = topology.node_list(node, key)?;
            self.count(nodes.len() * times.len(), node)?;
            let change = |&at: &Instant| Change { at, group, nodes: nodes.clone(), joins, node };
            changes.extend(times.iter().map(change));
            acts = true;
        }
        if acts {
            Ok(())
        } else {
            Err(item.error("an event of a group needs somebody to `join` or `leave` it"))
        }
    }

    fn apply(&mut self, change: Change<'_>, topology: &Topology) -> Result<(), Diagnostic> {
        let Change { at, group, nodes, joins, node: place } = change;
        let members = &mut self.groups[group].members;
        for node in nodes {
            let member = members.entry(node);
            if member.is_member(at) == joins {
                let name = &topology.nodes[node].name;
                let is = if joins { "a member already" } else { "no member" };
                return Err(place.error(format!("`{name}` is {is} of `{}` at {at}", self.groups[group].name)));
            }
            match member.spans.last_mut() {
                Some((_, until)) if !joins => *until = Some(at),
                _ => member.spans.push((at, None)),
            }
            let action = if joins { Action::Join { group, node } } else { Action::Leave { group, node } };
            self.events.push(Event { at, action });
        }
        Ok(())
    }
}

/// The nodes other than `from` that are members at some time.
pub(crate) fn receivers(group: &Group, from: NodeId) -> Vec<NodeId> {
    group.members.iter().map(|member| member.node).filter(|&node| node != from).collect()
}
