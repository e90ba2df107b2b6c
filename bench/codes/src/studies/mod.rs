//! The operations of which a speed is required, by kind; each with what is required of it.

pub(crate) mod bats;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod kernels;
pub(crate) mod recode;

/// Symbol lengths: the one that decides first. `rlnc` does what exceeds a multiple of 256 bytes one by one, so its
/// figures at the others belong beside those.
pub(crate) const LENGTHS: [usize; 3] = [1_400, 1_280, 1_536];

/// Sizes of generations.
pub(crate) const SIZES: [usize; 6] = [16, 32, 64, 128, 150, 256];

pub(crate) const OURS: &str = "hopcast";

/// Every length with every size.
pub(crate) fn every(sizes: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    LENGTHS.into_iter().flat_map(move |len| sizes.iter().map(move |&k| (len, k)))
}
