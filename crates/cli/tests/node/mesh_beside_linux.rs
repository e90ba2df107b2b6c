//! A node and the kernel's batman-adv in one mesh.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hopcast_core::plug::{DevicePlug, Plug};
use hopcast_core::{Buffer, Frame, Instant, Item, Machine, Outbox, Port};
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop};
use hopcast_node::testing::{Requirement, require};
use hopcast_uml::{Guest, kernel};

use crate::lab::{Lab, possible, within};
use crate::mesh::{PATIENCE, column};

/// The cable between the guest's port and a TAP device of a host: what one sends, the other is given.
struct Cable {
    guest: Guest,
    next: Instant,
    out: Outbox,
    /// Scripts for the guest, and their answers.
    scripts: Receiver<String>,
    answers: Sender<String>,
}

/// Interval at which the guest's port is read.
const INTERVAL: hopcast_core::Duration = hopcast_core::Duration::from_millis(1);

impl Machine for Cable {
    fn handle(&mut self, _: Instant, _: Port, item: Item) {
        if let Item::Frame(frame) = item {
            self.guest.send(0, &frame.bytes);
        }
    }

    fn wake(&mut self, now: Instant) {
        if let Ok(script) = self.scripts.try_recv() {
            let _ = self.answers.send(self.guest.sh(&script));
        }
        while let Some(bytes) = self.guest.receive(0, Duration::ZERO) {
            self.out.push(Port::Below(0), Item::Frame(Frame::new(Buffer::copy_from(&bytes))));
        }
        self.next = now + INTERVAL;
    }

    fn poll(&mut self, _: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.next)
    }
}

/// A cable's runtime on its own thread. Dropping it stops the runtime, and so the guest.
struct Running {
    stop: Stop,
    cable: Option<JoinHandle<()>>,
    scripts: Sender<String>,
    answers: Receiver<String>,
}

impl Running {
    /// Output of a script that the guest runs.
    fn sh(&self, script: &str) -> String {
        self.scripts.send(script.to_owned()).unwrap();
        self.answers.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
        let _ = self.cable.take().map(JoinHandle::join);
    }
}

#[test]
fn a_node_is_in_a_mesh_with_the_kernels_batman_adv() {
    if !possible() || !require(&[Requirement::File("uml", &kernel())]) {
        return;
    }
    let lab = Lab::row(&["ship"]);
    let mut guest = Guest::boot(1);
    let own = guest.sh("modprobe batman-adv
        ip link add bat0 type batadv
        batctl meshif bat0 bl 0
        ip link set vec0 mtu 1500
        ip link set vec0 up
        ip link set vec0 master bat0
        ip link set bat0 up
        ip address add 10.9.0.2/24 dev bat0
        cat /sys/class/net/vec0/address /sys/class/net/bat0/address");
    let (of_guest, client) = own.trim().split_once('\n').unwrap();
    let (stop, (opened, is_open)) = (Stop::new().unwrap(), channel());
    let ((scripts, of_test), (of_guest_shell, answers)) = (channel(), channel());
    let cable = lab.inside("ship", {
        let stop = stop.clone();
        move || {
            let (scripts, answers) = (of_test, of_guest_shell);
            let cable = Cable { guest, next: Instant::ZERO, out: Outbox::new(), scripts, answers };
            let (addresses, routes) = (Vec::new(), Vec::new());
            let name = "wire".to_owned();
            let device = DevicePlug { name, addresses, routes, mtu: 1500, reports_memberships: false };
            let plugs = [Plug::Tap([2, 0, 0, 0, 9, 1], device)];
            let mut runtime = Runtime::open(Box::new(cable), &plugs, Clock::starting_now()).unwrap();
            opened.send(()).unwrap();
            runtime.run(None, &stop).unwrap();
        }
    });
    let running = Running { stop, cable: Some(cable), scripts, answers };
    is_open.recv().unwrap();
    let service = "run: batman-iv, tap: bat0, address: 10.9.0.1/24, interfaces: wire";
    let node = lab.node("ship", &format!("name: ship\nlisten: 127.0.0.1:7400\nservices: {{ {service} }}"));
    let has = |table: &str, title: &str, cell: &str| column(&node.status(), table, title).contains(cell);
    assert!(within(PATIENCE, || has("originators", "originator", of_guest)), "{:?}", node.status());
    assert!(within(PATIENCE, || has("global clients", "client", client)), "{:?}", node.status());
    assert!(has("neighbours", "neighbour", of_guest));
    for size in ["56", "1472"] {
        let ping = || lab.attempt("ship", &format!("ping -q -c 3 -i 0.2 -W 5 -s {size} 10.9.0.2"));
        assert!(within(PATIENCE, || ping().status.success()), "{size}: {:?}", node.status());
    }
    // A group that the host joins is a client of the node, as the kernel sees it.
    let member = lab.inside("ship", || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.join_multicast_v4(&Ipv4Addr::new(239, 1, 2, 3), &Ipv4Addr::new(10, 9, 0, 1)).unwrap();
        socket
    });
    let member = member.join().unwrap();
    let known = || running.sh("batctl meshif bat0 o -n; batctl meshif bat0 tg -n");
    let knows = |address: &str| known().contains(address);
    assert!(within(PATIENCE, || knows("02:00:00:00:09:01") && knows("01:00:5e:01:02:03")), "{}", known());
    assert_eq!(node.status().host[0].counters["malformed"], 0);
    drop(member);
}
