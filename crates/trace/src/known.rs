//! The network in which captures were taken, as a scenario describes it.

use std::collections::BTreeMap;
use std::path::Path;

use hopcast_config::decode::nearest;

use crate::capture::CaptureError;
use crate::log::{Named, Place};
use crate::verdict::name_of_place;

/// The network that captures were taken in, as its scenario has it.
#[derive(Clone, Debug, Default)]
pub struct KnownNetwork {
    /// Its interfaces, with their links, MTUs and Ethernet addresses.
    pub interfaces: Vec<Place>,
    /// The names that queries may use.
    pub names: Vec<Named>,
}

impl KnownNetwork {
    /// Replaces captured interfaces by those of the network that have the same names, and adds the network's others.
    /// The name of a captured interface's node may also be that of the capture's file.
    ///
    /// # Errors
    /// If there are captured interfaces, and none of them is in the network.
    pub(crate) fn name_interfaces(&self, captured: &mut Vec<Place>) -> Result<(), CaptureError> {
        let mut known: BTreeMap<&str, BTreeMap<&str, &Place>> = BTreeMap::new();
        for place in &self.interfaces {
            if let Place::Interface { node, name, .. } = place {
                known.entry(node).or_default().insert(name, place);
            }
        }
        let mut is_named = false;
        for interface in captured.iter_mut() {
            let Place::Interface { node, name, .. } = &*interface else { continue };
            let stem = Path::new(node).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let of_node = known.get(node.as_str()).or_else(|| known.get(stem));
            if let Some(&place) = of_node.and_then(|interfaces| interfaces.get(name.as_str())) {
                *interface = place.clone();
                is_named = true;
            }
        }
        if let (Some(first), false) = (captured.first(), is_named) {
            return Err(self.other_network(first));
        }
        for interface in &*captured {
            if let Place::Interface { node, name, .. } = interface {
                known.get_mut(node.as_str()).and_then(|interfaces| interfaces.remove(name.as_str()));
            }
        }
        captured.extend(known.into_values().flat_map(BTreeMap::into_values).cloned());
        Ok(())
    }

    fn other_network(&self, captured: &Place) -> CaptureError {
        let found = name_of_place(captured);
        let names: Vec<String> = self.interfaces.iter().map(name_of_place).collect();
        let near = nearest(&found, names.iter().map(String::as_str)).or(names.first().map(String::as_str));
        CaptureError::OtherNetwork { expected: near.unwrap_or_default().to_owned(), found }
    }
}

/// Of each place the other interface of its link, if that has two.
pub(crate) fn other_ends(places: &[Place]) -> Vec<Option<usize>> {
    let mut links: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, place) in places.iter().enumerate() {
        if let Place::Interface { link, .. } = place
            && !link.is_empty()
        {
            links.entry(link).or_default().push(number);
        }
    }
    let mut others = vec![None; places.len()];
    for ends in links.into_values() {
        if let [one, other] = ends[..] {
            (others[one], others[other]) = (Some(other), Some(one));
        }
    }
    others
}
