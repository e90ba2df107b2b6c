//! What elements take from a source's SPMs beside its window, and what they hand on to it of a receiver's NAK.

use super::encapsulations::OF_OURS;
use super::net::{Below, Kind, Net};
use crate::pgm::router::Config;
use crate::pgm::wire::{AsOf, CongestionFeedback, Member};

fn one() -> Net {
    Net::new(&[None], &[0], Config::default())
}

#[test]
fn only_a_source_that_reads_it_is_told_what_an_element_had_heard() {
    for (repairs_first, told) in
        [(None, None), (Some(false), None), (Some(true), Some(AsOf { lead: 0, spm: 1 }))]
    {
        let mut net = one();
        net.member = repairs_first.map(|repairs_first| Member { is_framed: false, repairs_first });
        net.spm();
        let lost = net.data();
        net.ask(0, &[lost]);
        net.run(100);
        let as_of: Vec<_> = net.naks_at_source.iter().map(|(_, options)| options.as_of).collect();
        assert_eq!(as_of, [told], "{repairs_first:?}");
    }
}

#[test]
fn what_a_receiver_says_of_congestion_comes_to_the_source() {
    let mut net = Net::new(&[None, Some(0)], &[1], Config::default());
    net.spm();
    let lost = net.data();
    let feedback = CongestionFeedback { timestamp: 77, loss: 1000, receiver: net.receiver(0) };
    let mut nak = net.nak_of(&[lost], false);
    nak.options.congestion_feedback = Some(feedback);
    net.send_nak(0, &nak);
    net.run(100);
    let found: Vec<_> = net.naks_at_source.iter().map(|(_, options)| options.congestion_feedback).collect();
    assert_eq!(found, [Some(feedback)]);
}

#[test]
fn parity_that_is_sent_unasked_goes_to_all_until_the_next_group_has_begun() {
    for is_proactive in [true, false] {
        let mut net = one();
        (net.parity, net.is_proactive) = (Some(4), is_proactive);
        net.spm();
        (0..4).for_each(|_| _ = net.data());
        net.repair_by_parity(0);
        net.run(20);
        assert_eq!(net.on(Below::Receiver(0), Kind::Repair), u64::from(is_proactive));
        net.data();
        net.repair_by_parity(0);
        net.run(20);
        assert_eq!(
            net.on(Below::Receiver(0), Kind::Repair),
            u64::from(is_proactive),
            "nobody has asked for it"
        );
    }
}

#[test]
fn requests_are_repeated_as_the_source_sends_now() {
    let mut net = one();
    net.answers = false;
    net.spm();
    let lost = net.data();
    net.ask(0, &[lost]);
    net.run(10);
    let before = net.encapsulation;
    net.encapsulation = OF_OURS;
    net.spm();
    net.run(300);
    let found: Vec<_> = net.naks_at_source.iter().map(|&(encapsulation, _)| encapsulation).collect();
    assert_eq!(found[0], before);
    assert!(
        found.len() > 1 && found[1..].iter().all(|&found| found == OF_OURS.towards_source()),
        "{found:?}"
    );
}
