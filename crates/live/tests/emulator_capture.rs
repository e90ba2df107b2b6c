//! Captures of live links.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::io::Write;

use common::{Shared, captured, ms, networks_can_be_set_up};
use hopcast_core::{Duration, Fraction};
use hopcast_link::{Direction, Loss};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};

#[test]
fn each_frame_stands_where_it_left_and_where_it_arrived_and_a_lost_one_says_why() {
    if !networks_can_be_set_up() {
        return;
    }
    let loss = Loss::Independent(Fraction::from_percent(20.0).unwrap());
    let file = Shared::default();
    let (net, writer) = captured(&Direction { loss, delay: ms(10), ..Direction::default() }, file.clone());
    net.send(500, 300, Duration::from_micros(500));
    let report = net.finish();
    writer.finish().unwrap();
    let carried = report.links[0][0].closed;

    let bytes = file.0.lock().unwrap().clone();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let (mut names, mut left, mut arrived, mut lost) = (Vec::new(), BTreeMap::new(), 0, 0);
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                let name = interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                names.extend(name);
            }
            Block::EnhancedPacket(packet) if packet.interface_id == 0 => {
                let comments: Vec<_> = packet
                    .options
                    .iter()
                    .filter_map(|option| match option {
                        EnhancedPacketOption::Comment(text) => Some(text.to_string()),
                        EnhancedPacketOption::Flags(2) => None,
                        other => panic!("{other:?}"),
                    })
                    .collect();
                if !comments.is_empty() {
                    assert_eq!(comments, ["dropped on n0-n1: lost on the link"]);
                    lost += 1;
                }
                left.insert(packet.data.to_vec(), packet.timestamp);
            }
            Block::EnhancedPacket(packet) => {
                assert!(matches!(packet.options[..], [EnhancedPacketOption::Flags(1)]), "inbound");
                // Times are the model's own: the delay is exact.
                let delay = packet.timestamp - left[&packet.data.to_vec()];
                assert_eq!(delay.as_nanos(), 10_000_000);
                arrived += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["n0:eth0", "n1:eth0"]);
    assert_eq!(left.len() as u64, carried.sent_packets);
    assert_eq!((lost, arrived), (carried.lost_packets, carried.delivered_packets));
    assert!(lost > 50);
}

/// A disk with room for this number of bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_capture_and_not_the_run() {
    if !networks_can_be_set_up() {
        return;
    }
    let (net, writer) = captured(&Direction::default(), Disk(20_000));
    let arrivals = net.send(300, 300, Duration::from_micros(200));
    net.finish();
    assert_eq!(arrivals.len(), 300);
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.starts_with("capture: ") && !error.contains('\n'), "{error}");
}
