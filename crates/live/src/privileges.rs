//! What it takes to set up a lab, and how to come by it without being root.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::process::{Command, Stdio};

/// Set for the program that [`become_capable`] has started, so that it does not start itself for ever.
const INSIDE: &str = "HOPCAST_INSIDE_NAMESPACE";

/// What has to be done before a lab can be set up.
#[derive(Debug)]
pub enum Capable {
    /// Nothing.
    Already,
    /// This command has to be run in place of the program: the same program with the same arguments, in namespaces of its
    /// own in which it is root. Nothing that it sets up outlives it.
    Through(Command),
}

/// How the calling process can set up a lab.
///
/// # Errors
/// One line: why it cannot, and what to do about it.
pub fn become_capable() -> Result<Capable, String> {
    open_tun()?;
    if administers_network() && writes_run() {
        return Ok(Capable::Already);
    }
    if env::var_os(INSIDE).is_some() {
        return Err(
            "even in a user namespace of its own hopcast may not set up networks: run it as root".to_owned()
        );
    }
    try_user_namespace()?;
    let program =
        env::current_exe().map_err(|error| format!("cannot find the program that runs: {error}"))?;
    let mut command = user_namespace();
    // `ip netns` keeps its namespaces in /run, which is root's: we get another one, for the time that we run.
    let prepare = "mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/netns && exec \"$@\"";
    command.args(["--mount", "--", "sh", "-c", prepare, "sh"]).arg(program);
    command.args(env::args_os().skip(1).collect::<Vec<OsString>>()).env(INSIDE, "1");
    Ok(Capable::Through(command))
}

/// Whether TAP devices can be made.
///
/// # Errors
/// One line: why not, and what to do about it.
pub(crate) fn open_tun() -> Result<(), String> {
    let opened = File::options().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no /dev/net/tun: `modprobe tun` as root".to_owned(),
        std::io::ErrorKind::PermissionDenied => {
            "/dev/net/tun is not ours to open: run as root, or `chmod 666 /dev/net/tun` as root, as most systems have it"
                .to_owned()
        }
        _ => format!("/dev/net/tun: {error}"),
    })
}

/// `unshare` for a user namespace in which we are root, and a network namespace of its.
pub(crate) fn user_namespace() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net"]);
    command
}

pub(crate) fn try_user_namespace() -> Result<(), String> {
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
    Err(format!("no user namespace for those who are not root ({said}): {remedy}"))
}

/// Whether we may make network namespaces, and what belongs into them.
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

/// Whether `ip netns` and labs may leave in /run what they leave there.
fn writes_run() -> bool {
    fs::create_dir_all("/run/hopcast-labs").is_ok()
        && rustix::fs::access("/run", rustix::fs::Access::WRITE_OK).is_ok()
}
