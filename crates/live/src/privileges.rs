//! The privileges that a lab needs, and a way to obtain them without being root.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::process::{Command, Stdio};

use thiserror::Error;

/// Environment variable of the program that [`become_capable`] starts, which keeps it from starting itself for ever.
const INSIDE_VARIABLE: &str = "HOPCAST_INSIDE_NAMESPACE";

/// The step between the calling process and a lab.
#[derive(Debug)]
pub enum Capable {
    /// None: the process can set up a lab.
    Already,
    /// This command must run in place of the program: the same program with the same arguments, as root of namespaces
    /// of its own. Nothing that it sets up outlives it.
    Through(Command),
}

/// A lab cannot be set up by the calling process.
#[derive(Debug, Error)]
#[error("{}: {}", self.reason(), self.remedy())]
pub enum Error {
    /// The machine has no TUN and TAP driver.
    NoTun,
    /// The caller may not open the driver.
    TunForbidden,
    /// The driver cannot be opened.
    Tun(#[source] io::Error),
    /// The process lacks the privileges in a user namespace too.
    ForbiddenInNamespace,
    /// The running program cannot be found, to be run again.
    NoProgram(#[source] io::Error),
    /// The system gives no user namespace.
    NoUserNamespace {
        /// The message of `unshare`.
        said: String,
        /// The setting that would permit it.
        remedy: &'static str,
    },
}

impl Error {
    /// The reason, in a line.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::NoTun => "there is no /dev/net/tun".to_owned(),
            Self::TunForbidden => "/dev/net/tun is not ours to open".to_owned(),
            Self::Tun(error) => format!("/dev/net/tun: {error}"),
            Self::ForbiddenInNamespace => {
                "even in a user namespace of its own hopcast may not set up networks".to_owned()
            }
            Self::NoProgram(error) => format!("cannot find the program that runs: {error}"),
            Self::NoUserNamespace { said, .. } => {
                format!("no user namespace for those who are not root ({said})")
            }
        }
    }

    /// The remedy, in a line.
    pub(crate) const fn remedy(&self) -> &'static str {
        match self {
            Self::NoTun => "`modprobe tun` as root",
            Self::TunForbidden => "run as root, or `chmod 666 /dev/net/tun` as root, as most systems have it",
            Self::ForbiddenInNamespace => "run it as root",
            Self::Tun(_) => "run as root",
            Self::NoProgram(_) => "start it by its full path",
            Self::NoUserNamespace { remedy, .. } => remedy,
        }
    }
}

/// The step that the calling process needs to set up a lab.
///
/// # Errors
/// A missing privilege or device, with the remedy.
pub fn become_capable() -> Result<Capable, Error> {
    open_tun()?;
    if administers_network() && writes_run() {
        return Ok(Capable::Already);
    }
    if env::var_os(INSIDE_VARIABLE).is_some() {
        return Err(Error::ForbiddenInNamespace);
    }
    try_user_namespace()?;
    let program = env::current_exe().map_err(Error::NoProgram)?;
    let mut command = user_namespace();
    // `ip netns` keeps namespaces in /run, which belongs to root, so the command mounts a /run of its own.
    let prepare = "mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/netns && exec \"$@\"";
    command.args(["--mount", "--", "sh", "-c", prepare, "sh"]).arg(program);
    command.args(env::args_os().skip(1).collect::<Vec<OsString>>()).env(INSIDE_VARIABLE, "1");
    Ok(Capable::Through(command))
}

/// Checks that TAP devices can be made.
///
/// # Errors
/// A missing driver or privilege.
pub(crate) fn open_tun() -> Result<(), Error> {
    let opened = File::options().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoTun,
        io::ErrorKind::PermissionDenied => Error::TunForbidden,
        _ => Error::Tun(error),
    })
}

/// `unshare` with a user namespace in which the caller is root, and a network namespace in it.
pub(crate) fn user_namespace() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net"]);
    command
}

/// Checks that a user namespace can be made.
///
/// # Errors
/// A setting of the system that forbids it.
pub(crate) fn try_user_namespace() -> Result<(), Error> {
    let mut command = user_namespace();
    let tried =
        command.arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let said = match tried {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => {
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("it failed").to_owned()
        }
        Err(error) => format!("unshare (util-linux): {error}"),
    };
    let setting = |path: &str| fs::read_to_string(format!("/proc/sys/{path}")).ok();
    let is = |path: &str, value: &str| setting(path).is_some_and(|text| text.trim() == value);
    let remedy = if is("kernel/unprivileged_userns_clone", "0") {
        "run as root, or `sysctl kernel.unprivileged_userns_clone=1`"
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "run as root, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    } else if is("user/max_user_namespaces", "0") {
        "run as root, or `sysctl user.max_user_namespaces=10000`"
    } else {
        "run as root"
    };
    Err(Error::NoUserNamespace { said, remedy })
}

/// Whether this process may make network namespaces and set them up.
pub(crate) fn administers_network() -> bool {
    // capabilities(7), by number.
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    let needed = NET_ADMIN | SYS_ADMIN;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    effective.is_some_and(|effective| effective & needed == needed)
}

/// Whether `ip netns` and labs may write in /run.
fn writes_run() -> bool {
    fs::create_dir_all("/run/hopcast-labs").is_ok()
        && rustix::fs::access("/run", rustix::fs::Access::WRITE_OK).is_ok()
}
