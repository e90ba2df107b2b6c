//! The tables of a field for the kernels: for each coefficient, its multiplication as a linear map on bytes.

/// The multiplications of a field, built at compile time: 2 KiB of bit matrices, 8 KiB of nibble tables and, on x86-64,
/// the 32 KiB that those are when repeated over 64 bytes.
#[derive(Debug)]
pub struct Tables {
    /// For `gf2p8affineqb`: byte `7 - i` holds the input bits whose sum is bit `i` of the product.
    pub(super) affine: [u64; 256],
    /// For byte shuffles: the products of the 16 low nibbles, then those of the 16 high nibbles.
    pub(super) nibble: [[u8; 32]; 256],
    /// The two halves of each nibble table, four times over: for byte shuffles of 64 bytes.
    #[cfg(target_arch = "x86_64")]
    pub(super) repeated: [Repeated; 256],
}

/// Cache lines, so that a load of one touches no other.
#[cfg(target_arch = "x86_64")]
#[derive(Copy, Clone, Debug)]
#[repr(align(64))]
pub(super) struct Repeated(pub(super) [[u8; 64]; 2]);

impl Tables {
    /// The tables of a field given by the images `images[a][j]` of the byte `1 << j` under multiplication by `a`.
    pub(super) const fn new(images: &[[u8; 8]; 256]) -> Self {
        let mut tables = Self {
            affine: [0; 256],
            nibble: [[0; 32]; 256],
            #[cfg(target_arch = "x86_64")]
            repeated: [Repeated([[0; 64]; 2]); 256],
        };
        let mut a = 0;
        while a < 256 {
            tables.affine[a] = matrix(&images[a]);
            let mut n = 0;
            while n < 16 {
                tables.nibble[a][n] = apply(&images[a], n as u8);
                tables.nibble[a][16 + n] = apply(&images[a], (n as u8) << 4);
                n += 1;
            }
            #[cfg(target_arch = "x86_64")]
            {
                tables.repeated[a] = Repeated::new(&tables.nibble[a]);
            }
            a += 1;
        }
        tables
    }

    /// The product of coefficient `a` and the byte `x`.
    #[inline]
    pub(super) const fn byte(&self, a: u8, x: u8) -> u8 {
        let table = &self.nibble[a as usize];
        table[(x & 15) as usize] ^ table[16 + (x >> 4) as usize]
    }
}

#[cfg(target_arch = "x86_64")]
impl Repeated {
    const fn new(nibble: &[u8; 32]) -> Self {
        let mut halves = [[0; 64]; 2];
        let mut i = 0;
        while i < 64 {
            halves[0][i] = nibble[i % 16];
            halves[1][i] = nibble[16 + i % 16];
            i += 1;
        }
        Self(halves)
    }
}

const fn matrix(images: &[u8; 8]) -> u64 {
    let mut matrix = 0;
    let mut i = 0;
    while i < 8 {
        let mut j = 0;
        while j < 8 {
            if images[j] >> i & 1 == 1 {
                matrix |= 1 << (8 * (7 - i) + j);
            }
            j += 1;
        }
        i += 1;
    }
    matrix
}

const fn apply(images: &[u8; 8], x: u8) -> u8 {
    let mut y = 0;
    let mut j = 0;
    while j < 8 {
        if x >> j & 1 == 1 {
            y ^= images[j];
        }
        j += 1;
    }
    y
}
