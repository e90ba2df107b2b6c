//! Services of nodes, and what events change about them.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};
use hopcast_stack::network::{Layers, Network};
use hopcast_stack::service::{self, ServiceChange, ServiceLayer, ServiceSpec};

use super::events;
use super::model::{Action, Event, NodeId};
use super::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, did_you_mean, duration, entries, flag, list, one_or_list};
use hopcast_config::yaml::{Entry, Kind, Node};

/// The keys that every service has.
const KEYS: [&str; 4] = ["name", "run", "on", "interfaces"];
/// Maximum number of services. Chosen: more than one at each node of the largest network here would be a slip.
const MAX_SERVICES: usize = 1_000_000;

/// All services, by name.
#[derive(Default)]
pub(crate) struct Services {
    pub(crate) services: Vec<ServiceSpec>,
    /// What events do to them, in the order of the file.
    pub(crate) events: Vec<Event>,
    names: BTreeMap<String, usize>,
    /// Number of changes at single nodes so far.
    changes: usize,
}

impl Services {
    /// The services of `services`, with what `events` do to them.
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
        for item in events.map(|node| list(node, "events")).transpose()?.unwrap_or_default() {
            services.change(item, items, topology)?;
        }
        for service in &mut services.services {
            service.changes.sort_by_key(|change| change.at);
            // What is scheduled for later does not happen.
            service.changes.retain(|change| change.at <= Instant::ZERO + duration);
        }
        if services.services.is_empty() {
            return Ok(services);
        }
        let network = Network { services: &services.services, ..topology.network() };
        if let Err(error) = Layers::of(network) {
            let (item, node) = (&items[error.service], &topology.nodes[error.node].name);
            return Err(item.error(format!("at `{node}`: {}", error.why)));
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
        let on = topology.node_list(fields.need("on", "on: [a, b]")?, "on")?;
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

    /// Notes what an event does to a service, if it is one of a service.
    fn change(&mut self, item: &Node, items: &[Node], topology: &Topology) -> Result<(), Diagnostic> {
        let Some(named) = item.get("service") else { return Ok(()) };
        let fields = Fields::of(item, "an event", &events::ALLOWED)?;
        let at = Instant::ZERO + duration(fields.need("at", "at: 5s")?, "at")?;
        let name = decode::text(named, "service")?;
        let Some(&number) = self.names.get(name) else {
            let hint = did_you_mean(name, self.names.keys().map(String::as_str));
            return Err(named.error(format!("`service`: there is no service `{name}`{hint}")));
        };
        let service = &self.services[number];
        let mut on = service.on.clone();
        if let Some(node) = fields.get("on") {
            let known: BTreeSet<NodeId> = on.into_iter().collect();
            on = topology.node_list(node, "on")?;
            if let Some(stray) = on.iter().find(|at| !known.contains(at)) {
                let stray = &topology.nodes[*stray].name;
                return Err(node.error(format!("`on`: `{name}` does not run on `{stray}`")));
            }
        }
        on.sort_unstable();
        self.changes += on.len();
        if self.changes > events::MAX_CHANGES {
            let limit = events::MAX_CHANGES;
            return Err(
                item.error(format!("events come to at most {limit} changes of services, these to more"))
            );
        }
        let (to, what) = match (fields.get("stop"), fields.get("start"), fields.get("set")) {
            (Some(node), None, None) if flag(node, "stop")? => (None, "stops"),
            (None, Some(node), None) if flag(node, "start")? => (Some(service.layer.clone()), "starts"),
            (None, None, Some(set)) => (Some(layer(&changed(&items[number], set)?)?), "is set"),
            _ => {
                return Err(item.error(
                    "an event of a service needs one thing to do: `stop: true`, `start: true` or `set: { … }`",
                ));
            }
        };
        self.services[number].changes.push(ServiceChange { at, on: on.clone(), to });
        self.events.push(Event { at, action: Action::Service { service: number, on, what } });
        Ok(())
    }
}

/// What a service is, by its `run`, with its options.
fn layer(item: &Node) -> Result<ServiceLayer, Diagnostic> {
    let fields = Fields::empty(item, "a service");
    let run = match item.get("run") {
        Some(run) => run,
        None => fields.need("run", "run: vlan")?,
    };
    let row = service::find(run, decode::text(run, "run")?)?;
    (row.read)(row, item)
}

/// The keys of a service with this row.
fn allowed(layer: &ServiceLayer) -> Vec<&'static str> {
    let options = (layer.row().options)();
    KEYS.into_iter().chain(options.into_iter().map(|option| option.key)).collect()
}

/// A service as the file has it, with other values of some options.
fn changed(item: &Node, set: &Node) -> Result<Node, Diagnostic> {
    let mut new = item.clone();
    let options = allowed(&layer(item)?);
    Fields::of(set, "`set`", &options[KEYS.len()..])?;
    let Kind::Map(keys) = &mut new.kind else { return Ok(new) };
    for Entry { key, key_span, value } in entries(set, "`set`")? {
        match keys.iter_mut().find(|entry| entry.key == *key) {
            Some(entry) => entry.value = value.clone(),
            None => keys.push(Entry { key: key.clone(), key_span: key_span.clone(), value: value.clone() }),
        }
    }
    Ok(new)
}
