//! Services of nodes, and their changes by events.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hopcast_core::{Duration, Instant};
use hopcast_stack::network::{Layers, Network, ServiceChange, ServiceSpec};
use hopcast_stack::service::{MulticastRole, ServiceLayer};
use hopcast_stack::services;

use super::events;
use super::model::{Action, Event, NodeId};
use super::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, did_you_mean, entries, flag, list, one_or_list};
use hopcast_config::yaml::{Entry, Kind, Node};

/// The keys that every service has.
const KEYS: [&str; 4] = ["name", "run", "on", "interfaces"];
/// Maximum number of services. Chosen: one at each node of the largest network; more is most likely a slip.
const MAX_SERVICES: usize = 1_000_000;

/// All services, by name.
#[derive(Default)]
pub(crate) struct Services {
    pub(crate) services: Vec<ServiceSpec>,
    /// The events about services, in the order of the file.
    pub(crate) events: Vec<Event>,
    names: BTreeMap<String, usize>,
    /// The service of each node that brings groups' packets to members.
    routers: BTreeMap<NodeId, usize>,
    /// Number of changes of a service at a node so far.
    changes: usize,
}

/// A change of a service by an event.
struct Change<'n> {
    at: Instant,
    service: usize,
    on: Vec<NodeId>,
    does: Does<'n>,
}

#[derive(Clone, Copy)]
enum Does<'n> {
    Stop,
    Start,
    /// Sets options to other values.
    Set(&'n Node),
}

/// The options of a service after some of the events.
struct Options {
    /// A number of these options: equal numbers have equal options.
    number: usize,
    item: Node,
    layer: ServiceLayer,
}

/// The state of a service at a node.
#[derive(Clone)]
struct State {
    options: Rc<Options>,
    is_stopped: bool,
}

impl Services {
    /// The services of `services`, with their changes by `events`.
    pub(crate) fn of(
        node: Option<&Node>,
        events: Option<&Node>,
        topology: &Topology,
        duration: Duration,
    ) -> Result<Self, Diagnostic> {
        let mut services = Self::default();
        let items = node.map(|node| list(node, "services")).transpose()?.unwrap_or_default();
        for item in items {
            services.read(item, topology)?;
        }
        let mut changes = Vec::new();
        for item in events.map(|node| list(node, "events")).transpose()?.unwrap_or_default() {
            changes.extend(services.changes(item, (topology, duration))?);
        }
        changes.sort_by_key(|change| change.at);
        services.apply(&changes, items)?;
        for service in &mut services.services {
            // Events after the end of the run are ignored.
            service.changes.retain(|change| change.at <= Instant::ZERO + duration);
        }
        if services.services.is_empty() {
            return Ok(services);
        }
        let network = Network { services: &services.services, ..topology.network() };
        if let Err(error) = Layers::of(network) {
            let (item, node) = (&items[error.service], &topology.nodes[error.node].name);
            let place = item.get("interfaces").or(item.get("on")).unwrap_or(item);
            return Err(place.error(format!("at `{node}`: {error}")));
        }
        Ok(services)
    }

    fn read(&mut self, item: &Node, topology: &Topology) -> Result<(), Diagnostic> {
        let number = self.services.len();
        if number >= MAX_SERVICES {
            return Err(
                item.error(format!("a scenario has at most {MAX_SERVICES} services, this is one more"))
            );
        }
        let layer = layer(item)?;
        let fields = Fields::of(item, "a service", &allowed(&layer))?;
        let (name, span) = match fields.get("name") {
            Some(node) => (decode::name(node, "name")?.to_owned(), &node.span),
            None => (format!("{}{number}", layer.row().name), &item.span),
        };
        if self.names.insert(name.clone(), number).is_some() {
            return Err(span.error(format!("the service name `{name}` is taken already")));
        }
        let on = fields.need("on", "on: [a, b]")?;
        events::one_or_several(on, "on")?;
        let on = topology.node_list(on, "on")?;
        if matches!(layer.settings().multicast(), Some(MulticastRole::Routes | MulticastRole::Designated)) {
            for &node in &on {
                if let Some(other) = self.routers.insert(node, number).filter(|&other| other != number) {
                    let (node, other) = (&topology.nodes[node].name, &self.services[other].name);
                    return Err(fields.get("on").unwrap_or(item).error(format!(
                        "`on`: `{node}` runs `{other}`, which brings groups to their members as `{name}` does: a node has one such service"
                    )));
                }
            }
        }
        let interfaces = match fields.get("interfaces") {
            Some(node) => one_or_list(node).iter(),
            None if layer.row().on_host => [].iter(),
            None => one_or_list(fields.need("interfaces", "interfaces: eth0")?).iter(),
        };
        let interfaces: Result<_, _> =
            interfaces.map(|node| decode::text(node, "interfaces").map(str::to_owned)).collect();
        let interfaces = interfaces?;
        self.services.push(ServiceSpec { name, layer, on, interfaces, changes: Vec::new() });
        Ok(())
    }

    /// The changes of an event, if it is about a service.
    fn changes<'n>(
        &mut self,
        item: &'n Node,
        (topology, duration): (&Topology, Duration),
    ) -> Result<Vec<Change<'n>>, Diagnostic> {
        let Some(named) = item.get("service") else { return Ok(Vec::new()) };
        let fields = Fields::of(item, "an event", &events::ALLOWED)?;
        let times = events::times(fields, duration)?;
        let name = decode::text(named, "service")?;
        let Some(&number) = self.names.get(name) else {
            let hint = did_you_mean(name, self.names.keys().map(String::as_str));
            return Err(named.error(format!("`service`: there is no service `{name}`{hint}")));
        };
        let service = &self.services[number];
        let mut on = service.on.clone();
        if let Some(node) = fields.get("on") {
            events::one_or_several(node, "on")?;
            let known: BTreeSet<NodeId> = on.into_iter().collect();
            on = topology.node_list(node, "on")?;
            if let Some(stray) = on.iter().find(|at| !known.contains(at)) {
                let stray = &topology.nodes[*stray].name;
                return Err(node.error(format!("`on`: `{name}` does not run on `{stray}`")));
            }
        }
        on.sort_unstable();
        self.changes += on.len() * times.len();
        if self.changes > events::MAX_CHANGES {
            let limit = events::MAX_CHANGES;
            return Err(
                item.error(format!("events come to at most {limit} changes of services, these to more"))
            );
        }
        let (does, what) = match (fields.get("stop"), fields.get("start"), fields.get("set")) {
            (Some(node), None, None) if flag(node, "stop")? => (Does::Stop, "stops"),
            (None, Some(node), None) if flag(node, "start")? => (Does::Start, "starts"),
            (None, None, Some(set)) => (Does::Set(set), "is set"),
            _ => {
                return Err(item.error(
                    "an event of a service needs one thing to do: `stop: true`, `start: true` or `set: { … }`",
                ));
            }
        };
        let event = |&at: &Instant| {
            let action = Action::Service { service: number, on: on.clone(), what };
            Event { at, action }
        };
        self.events.extend(times.iter().map(event));
        Ok(times.iter().map(|&at| Change { at, service: number, on: on.clone(), does }).collect())
    }

    /// Computes the options of services after each change, in the order of time: options that were set earlier stay. A
    /// service that is set while it is stopped starts with the new options.
    fn apply(&mut self, changes: &[Change<'_>], items: &[Node]) -> Result<(), Diagnostic> {
        let mut states: BTreeMap<(usize, NodeId), State> = BTreeMap::new();
        let mut first: BTreeMap<usize, Rc<Options>> = BTreeMap::new();
        let mut numbers = 1..;
        for &Change { at, service: number, ref on, does } in changes {
            let service = &mut self.services[number];
            let first = first.entry(number).or_insert_with(|| {
                let (item, layer) = (items[number].clone(), service.layer.clone());
                Rc::new(Options { number: 0, item, layer })
            });
            // Nodes with equal options have equal ones after the change.
            let mut alike: BTreeMap<usize, (Rc<Options>, Vec<NodeId>)> = BTreeMap::new();
            for &node in on {
                let state = states
                    .entry((number, node))
                    .or_insert_with(|| State { options: first.clone(), is_stopped: false });
                let known = alike.entry(state.options.number);
                known.or_insert_with(|| (state.options.clone(), Vec::new())).1.push(node);
            }
            for (options, nodes) in alike.into_values() {
                let options = match does {
                    Does::Stop | Does::Start => options,
                    Does::Set(set) => {
                        let item = changed(&options.item, set)?;
                        let layer = layer(&item)?;
                        keeps_hooks(&service.name, [&options.layer, &layer], set)?;
                        Rc::new(Options { number: numbers.next().unwrap_or_default(), item, layer })
                    }
                };
                let mut run = Vec::new();
                for node in nodes {
                    let state = states.get_mut(&(number, node));
                    let Some(State { options: has, is_stopped }) = state else { continue };
                    has.clone_from(&options);
                    let stays = *is_stopped && matches!(does, Does::Set(_));
                    *is_stopped = stays || matches!(does, Does::Stop);
                    run.extend((!stays).then_some(node));
                }
                let to = (!matches!(does, Does::Stop)).then(|| options.layer.clone());
                if !run.is_empty() {
                    service.changes.push(ServiceChange { at, on: run, to });
                }
            }
        }
        Ok(())
    }
}

/// Refuses new options by which a service would take other packets out of its host.
fn keeps_hooks(name: &str, [old, new]: [&ServiceLayer; 2], set: &Node) -> Result<(), Diagnostic> {
    if old.settings().hooks() == new.settings().hooks() {
        return Ok(());
    }
    let keys: Vec<&str> = entries(set, "`set`")?.iter().map(|entry| &entry.key[..]).collect();
    let keys = decode::listed(&keys);
    Err(set.error(format!(
        "`set`: {keys}: which packets `{name}` takes out of its host stays the same for the whole run"
    )))
}

/// Reads the kind of a service, its `run`, with its options.
fn layer(item: &Node) -> Result<ServiceLayer, Diagnostic> {
    let fields = Fields::empty(item, "a service");
    let run = match item.get("run") {
        Some(run) => run,
        None => fields.need("run", "run: vlan")?,
    };
    let row = services::find(run, decode::text(run, "run")?)?;
    (row.read)(row, item)
}

/// The keys of a service with this row.
fn allowed(layer: &ServiceLayer) -> Vec<&'static str> {
    let options = (layer.row().options)();
    KEYS.into_iter().chain(options.into_iter().map(|option| option.key)).collect()
}

/// A service with other values of some options.
fn changed(item: &Node, set: &Node) -> Result<Node, Diagnostic> {
    let mut new = item.clone();
    let options = allowed(&layer(item)?);
    Fields::of(set, "`set`", &options[KEYS.len()..])?;
    let Kind::Map(keys) = &mut new.kind else { return Ok(new) };
    let set_keys = entries(set, "`set`")?;
    if set_keys.is_empty() {
        let options = decode::listed(&options[KEYS.len()..]);
        return Err(set.error(format!("`set`: expected an option, one of {options}, found none")));
    }
    for Entry { key, key_span, value } in set_keys {
        match keys.iter_mut().find(|entry| entry.key == *key) {
            Some(entry) => entry.value = value.clone(),
            None => keys.push(Entry { key: key.clone(), key_span: key_span.clone(), value: value.clone() }),
        }
    }
    Ok(new)
}
