//! The settings of a network element.

use hopcast_core::Duration;

/// The settings of a network element. Its defaults are tuned for hops of up to 100 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The time after which a NAK that no NCF has confirmed is sent again, the first time; it doubles each time (RFC
    /// 3208, NAK_RPT_IVL). Default: 50 ms. Shorter than a hop's round trip, and each NAK is sent twice; longer, and a
    /// lost one costs that time.
    pub retry: Duration,
    /// Number of times that a NAK is sent before its repair state is given up. Default: 6, which takes 3.2 s. With
    /// fewer a hop that loses much is given up; with more a neighbour that is gone is asked for longer.
    pub attempts: u32,
    /// The time after an NCF in which a further NAK for the same is only confirmed, and not forwarded (NAK_ELIM_IVL).
    /// Default: 250 ms, until repairs have shown how long they take; then it is that, and 20 ms. Shorter than repairs
    /// take, and the source hears one loss several times; longer, and what asks for a repair that was lost does not
    /// reach it.
    pub elimination: Duration,
    /// The time after an NCF for which a repair is waited for (NAK_RDATA_IVL). Default: 10 s. Shorter than the source
    /// takes, and repairs are dropped here; longer, and the state of repairs that are lost stays.
    pub repair_timeout: Duration,
    /// Maximum number of sources' sessions. Default: 256, of a few hundred bytes each. Packets of further ones are
    /// forwarded as by a router that knows no PGM.
    pub sessions: usize,
    /// Maximum number of repairs that are waited for in a session. Default: 4096, of some 200 bytes each. NAKs for
    /// further ones are dropped, and come again.
    pub repairs: usize,
    /// Bytes of data packets to keep, of all sessions, from which NAKs are answered here: the element is a designated
    /// local repairer. Default: 0, none are kept. With more than passes by in a round trip of the receivers' requests,
    /// only what was lost before this node is requested of the source.
    pub store: usize,
    /// Whether NAKs go to a repairer beside the tree first, which has what another branch lost (off-tree DLR, section
    /// 9.5), and whether such are looked for. Default: false. It costs a poll in ten seconds of losses, and the round
    /// trip to a repairer that lacks the same; who answers such polls can forge repairs.
    pub redirect: bool,
    /// Hop limit of the NCFs and NAKs that are made here. Default: 255. Too low, and they do not reach the next
    /// element.
    pub hop_limit: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            retry: Duration::from_millis(50),
            attempts: 6,
            elimination: Duration::from_millis(250),
            repair_timeout: Duration::from_secs(10),
            sessions: 256,
            repairs: 4096,
            store: 0,
            redirect: false,
            hop_limit: 255,
        }
    }
}
