//! A network element's figures.

/// Counters of a network element, cumulative since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// SPMs forwarded with this element as their path.
    pub(super) spms: u64,
    /// SPMs dropped because a newer one came before.
    pub(super) spms_old: u64,
    /// SPMs forwarded as they were, because there was no room for another session.
    pub(super) sessions_refused: u64,
    /// Requests for packets received in NAKs.
    pub(super) requests: u64,
    /// Requests forwarded, for the first time.
    pub(super) requests_forwarded: u64,
    /// Requests sent again because no NCF came.
    pub(super) requests_repeated: u64,
    /// Requests not forwarded, because the same had been asked for.
    pub(super) requests_eliminated: u64,
    /// Requests dropped: outside of the window, of another group, from the source's side, or beyond the maximum.
    pub(super) requests_refused: u64,
    /// NAKs of sessions that are not known here.
    pub(super) requests_unknown: u64,
    /// Requests given up, because nobody confirmed them.
    pub(super) requests_unconfirmed: u64,
    /// NAKs sent, and sent again.
    pub(super) naks_sent: u64,
    /// NCFs sent.
    pub(super) confirmations: u64,
    /// Confirmations heard of requests from here.
    pub(super) confirmations_heard: u64,
    /// Confirmations heard before a request came here.
    pub(super) confirmations_anticipated: u64,
    /// Confirmations dropped: outside of the window, from another side than the source's, or beyond the maximum.
    pub(super) confirmations_refused: u64,
    /// Repairs forwarded.
    pub(super) repairs: u64,
    /// Copies of them, one for each interface.
    pub(super) repair_copies: u64,
    /// Repairs dropped because nobody had asked for them here, or not from the source's side.
    pub(super) repairs_unasked: u64,
    /// Repairs that were confirmed and have not come.
    pub(super) repairs_missing: u64,
    /// Repairs made from packets that were kept here.
    pub(super) repairs_of_store: u64,
    /// NNAKs and ACKs forwarded, and NNAKs made here.
    pub(super) reports: u64,
    /// Polls sent for repairers beside the tree.
    pub(super) polls: u64,
    /// Requests sent to a repairer beside the tree.
    pub(super) requests_redirected: u64,
    /// Repairers beside the tree that did not confirm a request, and were forgotten.
    pub(super) repairers_silent: u64,
    /// Items that the port does not carry.
    pub(super) wrong_items: u64,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("element_spms", self.spms);
        report("element_spms_old", self.spms_old);
        report("element_sessions_refused", self.sessions_refused);
        report("element_requests", self.requests);
        report("element_requests_forwarded", self.requests_forwarded);
        report("element_requests_repeated", self.requests_repeated);
        report("element_requests_eliminated", self.requests_eliminated);
        report("element_requests_refused", self.requests_refused);
        report("element_requests_unknown", self.requests_unknown);
        report("element_requests_unconfirmed", self.requests_unconfirmed);
        report("element_naks_sent", self.naks_sent);
        report("element_confirmations", self.confirmations);
        report("element_confirmations_heard", self.confirmations_heard);
        report("element_confirmations_anticipated", self.confirmations_anticipated);
        report("element_confirmations_refused", self.confirmations_refused);
        report("element_repairs", self.repairs);
        report("element_repair_copies", self.repair_copies);
        report("element_repairs_unasked", self.repairs_unasked);
        report("element_repairs_missing", self.repairs_missing);
        report("element_repairs_of_store", self.repairs_of_store);
        report("element_reports", self.reports);
        report("element_polls", self.polls);
        report("element_requests_redirected", self.requests_redirected);
        report("element_repairers_silent", self.repairers_silent);
        report("element_wrong_items", self.wrong_items);
    }
}
