//! The sets of vector instructions, which of them this machine has, and what each must provide.
#![allow(unsafe_code)]

mod dispatch;
mod plain;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod gfni_avx2;
#[cfg(target_arch = "x86_64")]
mod gfni_avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod ssse3;

#[cfg(test)]
mod tests;

use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

pub use dispatch::Symbols;

/// A set of instructions that this machine has; there is no other way to get one than to ask for it here.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Kernel(Set);

/// What kernels are written for, the best last.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Set {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    GfniAvx2,
    #[cfg(target_arch = "x86_64")]
    GfniAvx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Set {
    const ALL: &'static [Self] = &[
        Self::Plain,
        #[cfg(target_arch = "x86_64")]
        Self::Ssse3,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::GfniAvx2,
        #[cfg(target_arch = "x86_64")]
        Self::GfniAvx512,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
    ];

    /// Whether this machine has it. Miri has no vector instructions to interpret, so there only the plain one is.
    fn is_here(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            _ if cfg!(miri) => false,
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx2 => is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx512 => {
                is_x86_feature_detected!("gfni")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => !cfg!(miri),
        }
    }
}

impl Kernel {
    /// Plain Rust, which every machine has.
    pub const PLAIN: Self = Self(Set::Plain);

    /// Those that this machine has, the best last.
    pub fn all() -> impl Iterator<Item = Self> {
        Set::ALL.iter().copied().filter(|set| set.is_here()).map(Self)
    }

    /// The best that this machine has; found out once.
    #[inline]
    pub fn best() -> Self {
        /// One more than the index in `ALL` of the best; 0 while it is not known.
        static BEST: AtomicU8 = AtomicU8::new(0);
        match BEST.load(Ordering::Relaxed) {
            0 => {
                let best = Set::ALL.iter().rposition(|set| set.is_here()).unwrap_or(0);
                BEST.store(best as u8 + 1, Ordering::Relaxed);
                Self(Set::ALL[best])
            }
            n => Self(Set::ALL[n as usize - 1]),
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Set::Ssse3 => "SSSE3",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Set::GfniAvx2 => "GFNI + AVX2",
            #[cfg(target_arch = "x86_64")]
            Set::GfniAvx512 => "GFNI + AVX-512",
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "NEON",
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
