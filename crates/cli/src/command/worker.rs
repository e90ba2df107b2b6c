//! `hopcast node SCENARIO --as NODE`: one node of a scenario on this host.

use std::io::{BufReader, stdin, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::Args;
use hopcast_core::Instant;
use hopcast_live::worker;
use hopcast_stack::network::NetworkPlan;
use hopcast_twin::Identities;
use hopcast_twin::probe::KernelChecks;
use hopcast_twin::scenario::{self, model::Scenario};

use crate::failure::Failure;
use crate::interrupt;
use crate::options::OverrideOptions;

/// The node and case of a scenario.
#[derive(Args)]
pub(crate) struct WorkerOptions {
    /// CONFIG is a scenario, and this host is the node of this name in it
    #[arg(long = "as", value_name = "NODE")]
    node: Option<String>,
    /// Which case of the scenario's sweep, from 0
    #[arg(long, value_name = "N", requires = "node", default_value_t = 0)]
    case: usize,
    /// Which repeat, from 0: it keys all randomness
    #[arg(long, value_name = "N", requires = "node", default_value_t = 0)]
    repeat: u64,
    /// When all nodes begin: a time of 2026-11-22T08:30:00Z's form, in UTC [default: the next full minute]
    #[arg(long, value_name = "TIME", requires = "node", value_parser = humantime::parse_rfc3339_weak)]
    begin: Option<SystemTime>,
    /// A live run supervises it over standard input and output
    #[arg(long, hide = true, requires = "node")]
    supervised: bool,
    /// It is part of `hopcast probe --live`, whose network is that of this time of the scenario
    #[arg(long, hide = true, requires = "supervised", value_name = "TIME")]
    probed_at: Option<hopcast_core::Duration>,
    #[command(flatten)]
    overrides: OverrideOptions,
}

impl WorkerOptions {
    /// The name of the node; `None` if CONFIG is no scenario.
    pub(crate) fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }
}

pub(crate) fn work(file: &Path, name: &str, options: &WorkerOptions) -> Result<(), Failure> {
    let plan = hopcast_runner::load(file, &options.overrides.resolve()).map_err(Failure::input)?;
    let case = plan.cases.get(options.case).ok_or_else(|| {
        Failure::input(format!(
            "--case: there are {} cases, from 0 on, and no {}",
            plan.cases.len(),
            options.case
        ))
    })?;
    let mut case = case.clone();
    if let Some(at) = options.probed_at {
        case.scenario = Arc::new(KernelChecks::scenario_of(&case.scenario, Instant::ZERO + at));
    }
    let scenario: &Scenario = &case.scenario;
    let Some(node) = scenario.nodes.iter().position(|node| node.name == name) else {
        let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
        let hint = scenario::did_you_mean(name, names.iter().copied());
        return Err(Failure::input(format!("--as: no node is named `{name}`{hint}")));
    };
    if options.supervised {
        // The supervisor ends the run; a Ctrl-C at the terminal must only reach the supervisor.
        interrupt::ignore_ctrl_c();
        let identity = Identities::new("").case(&case).to_string();
        let ran = worker::run_supervised(
            (scenario, &identity),
            node,
            options.repeat,
            BufReader::new(stdin()),
            stdout(),
        );
        return ran.map_err(Failure::run);
    }
    let begin = || {
        let begin = options.begin.unwrap_or_else(next_minute);
        let addresses = NetworkPlan::of(scenario.network()).addresses().all(node);
        let own = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        eprintln!("{name} ({own}) begins at {}", humantime::format_rfc3339_seconds(begin));
        begin
    };
    let stop = interrupt::stop_on_ctrl_c()?;
    let report =
        worker::run_standalone(scenario, node, options.repeat, begin, &stop).map_err(Failure::run)?;
    crate::output::write(report)
}

/// The default start time, for hosts that are started by hand at about the same time: the next full minute.
fn next_minute() -> SystemTime {
    const MINUTE: u64 = 60;
    #[allow(clippy::disallowed_methods)] // hosts have nothing else in common
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs((since.as_secs() / MINUTE + 1) * MINUTE)
}
