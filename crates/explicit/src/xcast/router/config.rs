//! The settings of a router.

/// The settings of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether it takes part. Default: true. A router that is off hands on what it is given, which its host drops: a
    /// packet of Xcast is for the routers of a link.
    pub enable: bool,
    /// Maximum number of copies and plain packets that are made in a second, a tenth of them at once. Default: a
    /// million, which is 12 Gbit/s of full packets. With fewer, data of many groups is dropped; with more, a forged
    /// packet with a list costs that much more than one without.
    pub copies_per_second: u32,
    /// Hop limit of tunnels. Default: 255. Too low, and they do not reach the next router.
    pub hop_limit: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self { enable: true, copies_per_second: 1_000_000, hop_limit: 255 }
    }
}
