//! `vlan`: interfaces of VLANs on another interface.

use std::rc::Rc;

use hopcast_bridge::Vlan;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{one_or_list, whole};
use hopcast_config::yaml::Node;
use hopcast_core::Machine;
use hopcast_wire::vlan::{CUSTOMER, MAX_ID, PROVIDER, Tag};

use crate::network::{Prefix, read_prefixes};
use crate::service::{
    AttachError, HostConfig, LowerInterface, Service, ServiceRoutes, ServiceRow, UpperInterface,
};
use crate::table::{Form, Opt, Options, Worlds, one_of, word_of};

pub(super) static VLAN: ServiceRow = ServiceRow {
    name: "vlan",
    about: "interfaces of VLANs on one interface, whose frames are tagged (IEEE 802.1Q, 802.1ad)",
    worlds: Worlds::Both,
    on_host: false,
    for_sites: false,
    options: || OPTIONS.docs(&Settings::default()),
    read: |row, node| OPTIONS.service(row, node, Settings::default()),
};

/// The settings.
#[derive(Clone, Debug)]
struct Settings {
    kind: u16,
    ids: Vec<u16>,
    prefixes: Vec<Prefix>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { kind: CUSTOMER, ids: vec![1], prefixes: Vec::new() }
    }
}

/// The names of the kinds of tags.
const KINDS: [(&str, u16); 2] = [("802.1q", CUSTOMER), ("802.1ad", PROVIDER)];
/// The form of such a name.
pub(super) const PROTOCOL: Form = Form::OneOf(&["802.1q", "802.1ad"]);

static OPTIONS: Options<Settings> = Options(&[
    Opt {
        key: "ids",
        about: "The VLANs, each 1 to 4094, one or a list: each has an interface of its own, as `eth0.7`.",
        form: Form::Numbers(1, MAX_ID as u64),
        set: |settings, node, key| ids(node, key).map(|found| settings.ids = found),
        show: |settings| settings.ids.iter().map(u16::to_string).collect::<Vec<_>>().join(" "),
    },
    Opt {
        key: "protocol",
        about: "The kind of tags: `802.1q` of customers, or `802.1ad` of a provider, which may carry others inside.",
        form: PROTOCOL,
        set: |settings, node, key| protocol(node, key).map(|kind| settings.kind = kind),
        show: |settings| protocol_name(settings.kind).to_owned(),
    },
    Opt {
        key: "prefix",
        about: "The prefix of the VLAN, of one alone, or a list of one of each version of IP, as that of a link. Written at one or at all of the VLAN's hosts.",
        form: Form::Prefixes,
        set: |settings, node, key| {
            if settings.ids.len() > 1 {
                let message = format!(
                    "`{key}`: a prefix is that of one VLAN, and this service has {}",
                    settings.ids.len()
                );
                return Err(node.error(message));
            }
            read_prefixes(node, key).map(|found| settings.prefixes = found)
        },
        show: |settings| settings.prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    },
]);

/// Reads the name of a kind of tags.
pub(super) fn protocol(node: &Node, key: &str) -> Result<u16, Diagnostic> {
    one_of(node, key, &KINDS)
}

/// The name of a kind of tags.
pub(super) fn protocol_name(kind: u16) -> &'static str {
    word_of(kind, &KINDS)
}

/// Reads VLANs, one or a list.
pub(super) fn ids(node: &Node, key: &str) -> Result<Vec<u16>, Diagnostic> {
    let mut ids = Vec::new();
    for item in one_or_list(node) {
        let id = whole(item, key, 1..=u64::from(MAX_ID))? as u16;
        if ids.contains(&id) {
            return Err(item.error(format!("`{key}`: {id} is listed twice")));
        }
        ids.push(id);
    }
    if ids.is_empty() {
        Err(node.error(format!("`{key}`: expected a VLAN, found an empty list")))
    } else {
        Ok(ids)
    }
}

impl Service for Settings {
    fn makes(&self, _: &str, lower: &[LowerInterface]) -> Result<Vec<UpperInterface>, AttachError> {
        let [lower] = lower else {
            let (wanted, found) = ("one interface", lower.len());
            return Err(AttachError::Number { kind: VLAN.name, wanted, found });
        };
        let made = |&id: &u16| {
            let tags = lower.tags.iter().copied().chain([Tag { kind: self.kind, id }]);
            let prefixes = self.prefixes.clone();
            UpperInterface { name: format!("{}.{id}", lower.name), over: 0, tags: tags.collect(), prefixes }
        };
        Ok(self.ids.iter().map(made).collect())
    }

    fn machine(&self, _: &HostConfig, _: &[LowerInterface], _: &Rc<dyn ServiceRoutes>) -> Box<dyn Machine> {
        let tag = |&id: &u16| Tag { kind: self.kind, id };
        Box::new(Vlan::new(self.ids.iter().map(tag).collect()))
    }
}
