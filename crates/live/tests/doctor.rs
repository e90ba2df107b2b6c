//! Findings of the doctor, and a lab for a user who is not root.

#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::{Running, ms, networks_can_be_set_up, skipped};
use hopcast_link::Direction;
use hopcast_live::doctor::{Health, examine, table};
use hopcast_live::privileges::{Capable, become_capable};
use hopcast_node::testing::{Requirement, require};

#[test]
fn the_doctor_finds_what_is_there_and_says_what_to_do_about_the_rest() {
    let findings = examine();
    let of = |what: &str| findings.iter().find(|finding| finding.what == what).unwrap();
    for finding in &findings {
        assert!(finding.health == Health::Yes || finding.remedy.is_some(), "{finding:?}");
        assert!(!finding.detail.contains('\n'), "{finding:?}");
    }
    assert_eq!(
        become_capable().is_ok(),
        of("rights").health == Health::Yes && of("/dev/net/tun").health == Health::Yes
    );
    for program in ["ip", "iperf3", "tshark"] {
        assert_eq!(of(program).health == Health::Yes, require(&[Requirement::Program(program)]));
    }
    for (library, file) in
        [("libnorm", "/usr/include/normApi.h"), ("OpenPGM", "/usr/include/pgm-5.3/pgm/pgm.h")]
    {
        let of_library = findings.iter().find(|finding| finding.what.starts_with(library)).unwrap();
        assert_eq!(of_library.health == Health::Yes, Path::new(file).is_file(), "{of_library:?}");
    }
    assert!(findings.iter().any(|finding| finding.what == "JGroups 2.12, for `jgroups`"));
    assert!(of("timers").detail.contains("late"), "{:?}", of("timers"));
    assert!(table(&findings).lines().count() >= findings.len());
}

#[test]
fn every_version_of_nft_reads_what_the_doctor_tries() {
    if !networks_can_be_set_up() || !require(&["unshare", "nft"].map(Requirement::Program)) {
        return;
    }
    let findings = examine();
    let tried: Vec<_> = findings.iter().filter(|finding| finding.what.starts_with("nft ")).collect();
    assert_eq!(tried.len(), 2);
    for finding in tried {
        // Whether the kernel can do it is the machine's business; that it is no mistake of writing is ours.
        assert!(!finding.detail.contains("syntax error"), "{finding:?}");
    }
}

/// Runs the test below as nobody, with a /dev/net/tun of `mode`, and gives what it said.
fn as_nobody(mode: &str) -> Option<String> {
    if !networks_can_be_set_up() || !require(&["unshare", "mknod"].map(Requirement::Program)) {
        return None;
    }
    // Where this program stands, nobody may not be allowed to look.
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let prepare = format!(
        "mount -t tmpfs tmpfs /dev/net && mknod -m {mode} /dev/net/tun c 10 200 && cd / && \
         exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", &prepare, "sh"]).arg(program);
    command.args(["--exact", "somebody_without_privileges", "--ignored", "--nocapture"]);
    let output = command.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if said.contains("cannot mount") || said.contains("mknod:") {
        skipped(&format!("no /dev/net/tun of its own: {said}"));
        return None;
    }
    Some(said)
}

#[test]
fn somebody_who_is_not_root_gets_a_lab_in_a_user_namespace() {
    let Some(said) = as_nobody("666") else { return };
    if said.contains("no user namespace") {
        skipped(&said);
        return;
    }
    assert!(said.contains("as root of its own: 10 arrived"), "{said}");
}

#[test]
fn without_a_device_to_open_the_reason_and_the_remedy_are_said() {
    let Some(said) = as_nobody("600") else { return };
    assert!(said.contains("cannot: /dev/net/tun is not ours to open: run as root, or `chmod 666"), "{said}");
}

#[test]
#[ignore = "a process for the tests above"]
fn somebody_without_privileges() {
    match become_capable() {
        Ok(Capable::Already) => {
            let net = Running::pair(&Direction::default());
            println!("as root of its own: {} arrived", net.send(10, 100, ms(1)).len());
            let mut command = net.lab.command(1, "ip");
            command.args(["-br", "link"]);
            assert!(net.lab.start(command).unwrap().wait().unwrap().success());
        }
        Ok(Capable::Through(mut command)) => {
            assert!(command.status().unwrap().success());
        }
        Err(error) => println!("cannot: {error}"),
    }
}
