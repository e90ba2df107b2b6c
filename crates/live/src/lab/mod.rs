//! The network of a live run: a namespace for each node, a TAP for each interface, addresses and routes.
//!
//! All of it is removed when the [`Lab`] is dropped, and after a crash by [`leftovers`], which finds it by the record
//! that each lab writes of itself. The machine's own network is not touched.

mod error;
mod group_routing;
mod ip;
mod ip_commands;
pub mod leftovers;
mod namespace;
pub(crate) mod programs;
pub(crate) mod registry;
mod reroute;
mod settings;
mod statistics;
mod tap;

use std::ffi::OsStr;
use std::io;
use std::net::IpAddr;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub use error::Error;
pub use namespace::Namespace;
pub(crate) use namespace::path;
pub use reroute::Rerouter;
pub use statistics::KernelDrops;
pub use tap::Tap;

use crate::layout::{GroupRouteLayout, LinkLayout, NetworkLayout, NodeLayout, RouteLayout};
use group_routing::GroupRouting;
use leftovers::Leftover;
use programs::Starter;
use registry::{CreatedNamespace, Process, Record, Registration};

/// A network on this machine's kernel.
pub struct Lab {
    nodes: Arc<[Node]>,
    /// The TAP of each attachment of each link, until they are taken.
    taps: Vec<Vec<Tap>>,
    starter: Option<Starter>,
    _registration: Registration,
}

pub(crate) struct Node {
    namespace: Namespace,
    interfaces: usize,
    addresses: Vec<IpAddr>,
    /// The names of its kernel's interfaces.
    names: Vec<String>,
    /// Its current routes.
    table: Mutex<Vec<RouteLayout>>,
    /// Its routes of groups; `None` if it has none.
    groups: Option<GroupRouting>,
}

impl Lab {
    /// An id that no other living lab has.
    pub fn fresh_id() -> String {
        static LABS: AtomicUsize = AtomicUsize::new(0);
        format!("{}-{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed))
    }

    /// Sets up the nodes and interfaces of `layout`, in namespaces called `hopcast-<id>-<node>`.
    ///
    /// # Errors
    /// The first step that failed; nothing is left behind.
    pub fn set_up(layout: &NetworkLayout, id: &str) -> Result<Self, Error> {
        allow_many_files();
        let names = namespace::names(id, layout.nodes.iter().map(|node| node.name.as_str()));
        if let Some(taken) = names.iter().find(|name| path(name).exists()) {
            let of_it = |left: &Leftover| left.namespaces().any(|name| name == taken);
            let left_over = leftovers::find().is_ok_and(|left| left.iter().any(of_it));
            return Err(Error::NameTaken { name: taken.clone(), left_over });
        }
        let made = |name: &String| CreatedNamespace { name: name.clone(), inode: None };
        let mut record = Record { owner: Process::this()?, namespaces: names.iter().map(made).collect() };
        let registration = Registration::new(id, &record)?;
        let made = NewNamespaces::begin(&names)?;
        for (made, namespace) in record.namespaces.iter_mut().zip(&made.namespaces) {
            made.inode = namespace.identity();
        }
        registration.update(&record)?;
        let (nodes, taps) = set_up_nodes(layout, &made.namespaces)?;
        let starter = Some(Starter::new().map_err(Error::Thread)?);
        made.keep();
        Ok(Self { nodes: nodes.into(), taps, starter, _registration: registration })
    }

    /// The network namespace of a node.
    pub fn namespace(&self, node: usize) -> &Namespace {
        &self.nodes[node].namespace
    }

    /// Runs `work` on a thread inside a node.
    ///
    /// # Errors
    /// [`Error::Enter`], if the namespace cannot be entered.
    pub fn enter<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        self.nodes[node].namespace.run(work)
    }

    /// A command that runs `program` in a node; add its arguments, and start it with [`Lab::start`].
    pub fn command(&self, node: usize, program: impl AsRef<OsStr>) -> Command {
        // The program is killed when this process ends.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "ip", "netns", "exec", self.namespace(node).name()])
            .arg(program);
        command
    }

    /// Starts a [`command`](Lab::command). It ends with the lab at the latest.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(&self, command: Command) -> io::Result<Child> {
        match &self.starter {
            Some(starter) => starter.start(command),
            None => Err(io::Error::other("the lab is being removed")),
        }
    }

    /// Replaces all routes of a node.
    ///
    /// # Errors
    /// The first route that cannot be set.
    pub fn reroute(&self, node: usize, routes: &[RouteLayout]) -> Result<(), Error> {
        self.nodes[node].reroute(Some(routes), &[])
    }

    /// Takes the TAPs, of each attachment of each link; empty after the first call.
    pub(crate) fn take_taps(&mut self) -> Vec<Vec<Tap>> {
        std::mem::take(&mut self.taps)
    }

    /// The drops of each node's kernel.
    ///
    /// # Errors
    /// A counter that cannot be read.
    pub fn kernel_drops(&self) -> Result<Vec<KernelDrops>, Error> {
        let read = |node: &Node| node.namespace.run(|| KernelDrops::read(node.interfaces))?;
        self.nodes.iter().map(read).collect()
    }
}

impl Node {
    fn reroute_groups(&self, routes: &[GroupRouteLayout]) -> Result<(), Error> {
        self.groups.as_ref().map_or(Ok(()), |groups| groups.change(routes))
    }

    fn reroute(&self, routes: Option<&[RouteLayout]>, mtus: &[(u32, u32)]) -> Result<(), Error> {
        let mut table = self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut commands = ip_commands::mtus(mtus);
        if let Some(routes) = routes {
            commands.push_str(&ip_commands::reroute((&self.addresses, &self.names), &table, routes));
        }
        if !commands.is_empty() {
            self.namespace.run(|| ip::batch(&commands))?.map_err(|(error, _)| error)?;
        }
        if let Some(routes) = routes {
            *table = routes.to_vec();
        }
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let namespaces: Vec<_> = self.nodes.iter().map(|node| &node.namespace).collect();
        programs::end_all_in(&namespaces);
        drop(self.starter.take());
        remove(namespaces.iter().map(|namespace| namespace.name()));
    }
}

/// Namespaces that are removed again unless they are kept.
struct NewNamespaces {
    names: Vec<String>,
    namespaces: Vec<Namespace>,
}

impl NewNamespaces {
    fn begin(names: &[String]) -> Result<Self, Error> {
        let commands: String = names.iter().map(|name| format!("netns add {name}\n")).collect();
        let failed = ip::batch(&commands).err();
        // The namespaces before the one that failed are this lab's; that one may be another's.
        let ours = failed.as_ref().map_or(names.len(), |(_, number)| number.unwrap_or(0));
        let mut creation = Self { names: names[..ours].to_vec(), namespaces: Vec::new() };
        if let Some((error, _)) = failed {
            return Err(error);
        }
        creation.namespaces = names.iter().map(|name| Namespace::open(name)).collect::<Result<_, _>>()?;
        Ok(creation)
    }

    fn keep(mut self) {
        self.names.clear();
    }
}

impl Drop for NewNamespaces {
    fn drop(&mut self) {
        // They are closed first, so that descriptors are left to start `ip` with.
        self.namespaces.clear();
        remove(self.names.iter().map(String::as_str));
    }
}

/// Removes the named namespaces, as far as they exist.
pub(crate) fn remove<'a>(names: impl Iterator<Item = &'a str>) {
    for name in names {
        let _ = ip::batch(&format!("netns del {name}\n"));
    }
}

type NodesAndTaps = (Vec<Node>, Vec<Vec<Tap>>);

/// Calls `work` for each number below `count`, on several threads; the results are in order.
fn several_at_once<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    /// Number of threads that run `ip`. Chosen: `ip` mostly waits for the kernel's lock, and more threads would only
    /// wait for each other.
    const THREADS: usize = 4;
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(done);
            }
            done.push((number, work(number)?));
        }
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS.min(count)).map(|_| scope.spawn(share)).collect();
        let joined = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        joined.collect::<Result<Vec<_>, Error>>().map(|parts| parts.into_iter().flatten().collect())
    })?;
    done.sort_unstable_by_key(|&(number, _)| number);
    Ok(done.into_iter().map(|(_, done)| done).collect())
}

/// Gives all nodes their interfaces, addresses and routes.
fn set_up_nodes(layout: &NetworkLayout, namespaces: &[Namespace]) -> Result<NodesAndTaps, Error> {
    // Link models cannot be shared between threads, so the closure must not borrow `layout`.
    let nodes = &layout.nodes;
    let set_up_one = |number: usize| set_up_node(&nodes[number], &namespaces[number]);
    let done = several_at_once(nodes.len(), set_up_one)?;
    let mut taps: Vec<Vec<Option<Tap>>> =
        layout.links.iter().map(|link| link.ends.iter().map(|_| None).collect()).collect();
    let mut nodes = Vec::with_capacity(done.len());
    for ((node, namespace), (devices, groups)) in layout.nodes.iter().zip(namespaces).zip(done) {
        for (interface, tap) in node.interfaces.iter().zip(devices) {
            taps[interface.link][interface.attachment] = Some(tap);
        }
        nodes.push(Node {
            namespace: namespace.clone(),
            interfaces: node.interfaces.len(),
            addresses: node.addresses.clone(),
            names: node.interface_names(),
            table: Mutex::new(node.routes.clone()),
            groups,
        });
    }
    let each = |(taps, link): (Vec<Option<Tap>>, &LinkLayout)| {
        let all: Option<Vec<Tap>> = taps.into_iter().collect();
        all.ok_or_else(|| Error::LooseEnd(link.name.clone()))
    };
    let taps = taps.into_iter().zip(&layout.links).map(each).collect::<Result<_, Error>>()?;
    Ok((nodes, taps))
}

fn set_up_node(node: &NodeLayout, namespace: &Namespace) -> Result<(Vec<Tap>, Option<GroupRouting>), Error> {
    let commands = ip_commands::node(node);
    let done = namespace.run(|| {
        settings::apply()?;
        let taps: Result<Vec<Tap>, Error> = (0..node.interfaces.len()).map(Tap::create).collect();
        let taps = taps?;
        ip::batch(&commands).map_err(|(error, _)| error)?;
        let routes_groups = !node.group_routes.is_empty();
        let groups = routes_groups.then(|| GroupRouting::start(node)).transpose()?;
        Ok((taps, groups))
    })?;
    done.map_err(|error: Error| Error::Node { name: node.name.clone(), source: Box::new(error) })
}

/// Raises the limit of open files: a lab needs one for each interface and a few for each program, more than the usual
/// limit of 1024.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If the limit is still too low, opening fails with an error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
