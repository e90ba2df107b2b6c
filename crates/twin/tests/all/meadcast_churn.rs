//! The study of MEADcast with members that come and go.

#![allow(clippy::unwrap_used)]

use crate::common::studies::{parameter, study};

#[test]
fn churn() {
    let document = study("meadcast-churn", &[]);
    for run in &document.runs {
        let flow = &run.flows[0];
        let c = |name: &str| flow.counters.get(name).copied().unwrap_or(0);
        println!(
            "{} {} {}: rel {:?} sent {} deliv {} saving {:?} sender {:?} | disc {} req {} resp {} uni {} pk {} | joins {} refr {} leaves {} chall {} ended {} mreq {} mrep {} macc {} mref {}",
            parameter(run, "events.paths.delay"),
            parameter(run, "groups.clients.churn.rate"),
            parameter(run, "groups.clients.delivery"),
            flow.figures.reliability,
            flow.figures.sent_units,
            flow.figures.delivered_units,
            flow.figures.network_saving,
            flow.figures.sender_saving,
            c("meadcast_sender_discoveries"),
            c("meadcast_sender_requests"),
            c("meadcast_sender_responses"),
            c("meadcast_sender_unicast"),
            c("meadcast_sender_packets"),
            c("directory_joins"),
            c("directory_refreshes"),
            c("directory_leaves"),
            c("directory_challenges"),
            c("directory_ended"),
            c("directory_member_requests"),
            c("directory_member_repeated"),
            c("directory_member_accepted"),
            c("directory_member_refused")
        );
    }
}
