//! The issue limit: the blocked kernel's arithmetic on registers alone, without a load or a store.

use hopcast_code::field::Kernel;

use crate::race::Contender;

pub(crate) const NAME: &str = "issue limit";

/// As many bytes of terms as it takes to forget the beginning and the end.
const BYTES: usize = 1 << 20;

/// The limit of the kernel in use, as far as it is known here.
pub(crate) fn contender() -> Option<Contender<'static>> {
    #[cfg(target_arch = "x86_64")]
    match Kernel::best().name() {
        // SAFETY: these are the kernels' instructions, and there is a kernel of that name only where they exist.
        "AVX2" => return Some(Contender::new(NAME, BYTES, || unsafe { x86::avx2(BYTES) })),
        // SAFETY: likewise.
        "AVX-512" => return Some(Contender::new(NAME, BYTES, || unsafe { x86::avx512(BYTES) })),
        // SAFETY: likewise.
        "GFNI + AVX-512" => return Some(Contender::new(NAME, BYTES, || unsafe { x86::gfni_avx512(BYTES) })),
        _ => {}
    }
    None
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// One source after the other, two vectors of it for four destinations: nibbles, shuffles, sums.
    #[target_feature(enable = "avx2")]
    pub(super) fn avx2(bytes: usize) {
        let low = _mm256_set1_epi8(15);
        let mut sums = [[_mm256_setzero_si256(); 2]; 4];
        let mut x = [_mm256_setzero_si256(); 2];
        let mut factor = [low; 2];
        for _ in 0..bytes / (4 * 2 * 32) {
            let mut nibbles = [[low; 2]; 2];
            for w in 0..2 {
                // SAFETY: it does nothing; the compiler just no longer knows what is in the register.
                unsafe {
                    asm!("/* {0} */", inout(ymm_reg) x[w], options(pure, nomem, nostack, preserves_flags));
                };
                nibbles[w] =
                    [_mm256_and_si256(x[w], low), _mm256_and_si256(_mm256_srli_epi64::<4>(x[w]), low)];
            }
            for sums in &mut sums {
                for half in 0..2 {
                    // SAFETY: likewise.
                    unsafe {
                        asm!("/* {0} */", inout(ymm_reg) factor[half], options(pure, nomem, nostack, preserves_flags));
                    };
                    for w in 0..2 {
                        sums[w] =
                            _mm256_xor_si256(sums[w], _mm256_shuffle_epi8(factor[half], nibbles[w][half]));
                    }
                }
            }
        }
        for sum in sums.as_flattened() {
            // SAFETY: it does nothing; the sums are wanted.
            unsafe { asm!("/* {0} */", in(ymm_reg) *sum, options(nomem, nostack, preserves_flags)) };
        }
    }

    /// One source after the other, two vectors of it for eight destinations: nibbles, shuffles, a ternary sum.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn avx512(bytes: usize) {
        let low = _mm512_set1_epi8(15);
        let mut sums = [[_mm512_setzero_si512(); 2]; 8];
        let mut x = [_mm512_setzero_si512(); 2];
        let mut factor = [low; 2];
        for _ in 0..bytes / (8 * 2 * 64) {
            let mut nibbles = [[low; 2]; 2];
            for w in 0..2 {
                // SAFETY: it does nothing; the compiler just no longer knows what is in the register.
                unsafe {
                    asm!("/* {0} */", inout(zmm_reg) x[w], options(pure, nomem, nostack, preserves_flags));
                };
                nibbles[w] =
                    [_mm512_and_si512(x[w], low), _mm512_and_si512(_mm512_srli_epi64::<4>(x[w]), low)];
            }
            for sums in &mut sums {
                for half in &mut factor {
                    // SAFETY: likewise.
                    unsafe {
                        asm!(
                            "/* {0} */",
                            inout(zmm_reg) * half,
                            options(pure, nomem, nostack, preserves_flags)
                        );
                    };
                }
                for w in 0..2 {
                    let first = _mm512_shuffle_epi8(factor[0], nibbles[w][0]);
                    let second = _mm512_shuffle_epi8(factor[1], nibbles[w][1]);
                    sums[w] = _mm512_ternarylogic_epi64::<0x96>(sums[w], first, second);
                }
            }
        }
        for sum in sums.as_flattened() {
            // SAFETY: it does nothing; the sums are wanted.
            unsafe { asm!("/* {0} */", in(zmm_reg) *sum, options(nomem, nostack, preserves_flags)) };
        }
    }

    /// Two sources at a time, four vectors of each for four destinations: two affine maps and a ternary sum.
    #[target_feature(enable = "gfni,avx512f,avx512bw")]
    pub(super) fn gfni_avx512(bytes: usize) {
        let mut sums = [[_mm512_setzero_si512(); 4]; 4];
        let mut x = [[_mm512_setzero_si512(); 4]; 2];
        let mut matrices = [_mm512_setzero_si512(); 2];
        for _ in 0..bytes / (4 * 4 * 2 * 64) {
            for x in x.as_flattened_mut() {
                // SAFETY: it does nothing; the compiler just no longer knows what is in the register.
                unsafe {
                    asm!("/* {0} */", inout(zmm_reg) * x, options(pure, nomem, nostack, preserves_flags));
                };
            }
            for sums in &mut sums {
                for matrix in &mut matrices {
                    // SAFETY: likewise.
                    unsafe {
                        asm!(
                            "/* {0} */",
                            inout(zmm_reg) * matrix,
                            options(pure, nomem, nostack, preserves_flags)
                        );
                    };
                }
                for w in 0..4 {
                    let first = _mm512_gf2p8affine_epi64_epi8::<0>(x[0][w], matrices[0]);
                    let second = _mm512_gf2p8affine_epi64_epi8::<0>(x[1][w], matrices[1]);
                    sums[w] = _mm512_ternarylogic_epi64::<0x96>(sums[w], first, second);
                }
            }
        }
        for sum in sums.as_flattened() {
            // SAFETY: it does nothing; the sums are wanted.
            unsafe { asm!("/* {0} */", in(zmm_reg) *sum, options(nomem, nostack, preserves_flags)) };
        }
    }
}
