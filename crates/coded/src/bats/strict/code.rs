//! The outer code of a block, as both ends have it.

use hopcast_code::bats::{BatchSize, InnerField, Parameters, Sampling, Start};

use super::super::shape::Shape;

/// The code of a session's blocks: systematic batches, then repairs with even sampling. `None` for a shape that no
/// code has.
pub(super) fn parameters(shape: Shape) -> Option<Parameters> {
    let batch = BatchSize::new(shape.batch.symbols(), InnerField::Gf256).ok()?;
    let parameters = Parameters::new(usize::from(shape.block), usize::from(shape.symbol), batch).ok()?;
    Some(parameters.sampling(Sampling::Even { session: 0 }).start(Start::Systematic))
}

/// The seed of a block's code, which differs from those of others.
pub(super) const fn session(session: u32, block: u64) -> u32 {
    session.wrapping_mul(0x9E37_79B9) ^ block as u32
}

/// Maximum number of a session's blocks under way, where `batches` batches are held.
pub(super) fn window(shape: Shape, batches: u16) -> u64 {
    (u64::from(batches) / shape.batches()).clamp(2, super::super::wire::MAX_BLOCKS as u64)
}
