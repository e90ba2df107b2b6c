//! The settings of a router.

use crate::meadcast::Key;

/// The settings of a router. The first two have the names that the thesis' kernel has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether it takes part. Default: true. A router that is off forwards as any other, and senders learn so at their
    /// next discovery; until then receivers behind it get nothing.
    pub enable: bool,
    /// Number of receivers below which a section of another router becomes plain packets here (premature M2U). Default:
    /// 1, which is never. With more, there are shorter packets on the way to that router, and more of them.
    pub min_dsts: u8,
    /// Maximum number of copies and plain packets that are made in a second, a tenth of them at once. Default: a
    /// million, which is 12 Gbit/s of full packets. With fewer, data of many groups is dropped; with more, a forged
    /// packet with a list costs that much more than one without.
    pub copies_per_second: u32,
    /// Maximum number of responses to discovery in a second, a tenth of them at once. Default: 10,000, as 700 senders
    /// with 100 receivers need that ask every 7 s. With fewer, senders do not learn of this router; with more, requests
    /// with a forged source cause that many packets.
    pub responses_per_second: u32,
    /// Hop limit of responses. Default: 255, as in the thesis. Too low, and they do not reach the sender.
    pub hop_limit: u8,
    /// Key of the domain, with which responses to requests that have a nonce are authenticated. Default: none, and
    /// senders that have one do not learn of this router.
    pub key: Option<Key>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enable: true,
            min_dsts: 1,
            copies_per_second: 1_000_000,
            responses_per_second: 10_000,
            hop_limit: 255,
            key: None,
        }
    }
}
