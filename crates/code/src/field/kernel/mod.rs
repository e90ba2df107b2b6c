//! The sets of vector instructions, which of them this machine has, and what each must provide.
#![allow(unsafe_code)]

mod dispatch;
mod plain;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod gfni_avx2;
#[cfg(target_arch = "x86_64")]
mod gfni_avx512;
#[cfg(target_arch = "x86_64")]
mod masked;
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

/// The instruction sets for which there are kernels, the best last.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Set {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    GfniAvx2,
    #[cfg(target_arch = "x86_64")]
    GfniAvx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// The extensions of a machine's instruction set that kernels ask for.
#[derive(Copy, Clone, Default)]
struct Extensions {
    #[cfg(target_arch = "x86_64")]
    ssse3: bool,
    #[cfg(target_arch = "x86_64")]
    avx2: bool,
    /// AVX-512F and AVX-512BW.
    #[cfg(target_arch = "x86_64")]
    avx512: bool,
    #[cfg(target_arch = "x86_64")]
    gfni: bool,
    #[cfg(target_arch = "aarch64")]
    neon: bool,
}

impl Extensions {
    /// The extensions of this machine. Miri has no vector instructions to interpret, so there are none under Miri.
    fn of_this_machine() -> Self {
        if cfg!(miri) {
            return Self::default();
        }
        Self {
            #[cfg(target_arch = "x86_64")]
            ssse3: is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            avx2: is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            avx512: is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"),
            #[cfg(target_arch = "x86_64")]
            gfni: is_x86_feature_detected!("gfni"),
            // Every 64-bit Arm processor that runs an operating system has it.
            #[cfg(target_arch = "aarch64")]
            neon: true,
        }
    }
}

impl Set {
    const ALL: &'static [Self] = &[
        Self::Plain,
        #[cfg(target_arch = "x86_64")]
        Self::Ssse3,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(target_arch = "x86_64")]
        Self::GfniAvx2,
        #[cfg(target_arch = "x86_64")]
        Self::GfniAvx512,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
    ];

    /// The kernels of a machine with these extensions, the best last.
    fn all_of(machine: Extensions) -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |set| set.is_of(machine))
    }

    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), expect(unused_variables))]
    fn is_of(self, machine: Extensions) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => machine.ssse3,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => machine.avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => machine.avx512,
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx2 => machine.gfni && machine.avx2,
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx512 => machine.gfni && machine.avx512,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => machine.neon,
        }
    }
}

/// The number of the kernel that works where none is named; 0 while it is not known.
static BEST: AtomicU8 = AtomicU8::new(0);

impl Kernel {
    /// Plain Rust, which every machine has.
    pub const PLAIN: Self = Self(Set::Plain);

    /// The kernels of this machine, the best last.
    pub fn all() -> impl Iterator<Item = Self> {
        Set::all_of(Extensions::of_this_machine()).map(Self)
    }

    /// The one that works where none is named: the best that this machine has, found out once, or the
    /// [preferred](Self::prefer) one.
    #[inline]
    pub fn best() -> Self {
        match BEST.load(Ordering::Relaxed) {
            0 => Self::find_best(),
            n => Self(Set::ALL[n as usize - 1]),
        }
    }

    #[cold]
    fn find_best() -> Self {
        let best = Set::all_of(Extensions::of_this_machine()).next_back().map_or(Self::PLAIN, Self);
        // Unless another thread has meanwhile preferred one.
        _ = BEST.compare_exchange(0, best.number(), Ordering::Relaxed, Ordering::Relaxed);
        best
    }

    /// Makes this the [`best`](Self::best) one from now on, for the whole process: tests and benchmarks measure
    /// with it what another machine would use. All kernels give the same bytes.
    pub fn prefer(self) {
        BEST.store(self.number(), Ordering::Relaxed);
    }

    /// One more than its index in [`Set::ALL`].
    fn number(self) -> u8 {
        let index = Set::ALL.iter().position(|&set| set == self.0).expect("every set is listed");
        index as u8 + 1
    }

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Set::Ssse3 => "SSSE3",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "AVX-512",
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
