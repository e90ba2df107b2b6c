//! BATS codes once more, from the definitions alone: slow, scalar, and with nothing of the crate in it.

/// The crate's `Parameters` in plain numbers.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) k: usize,
    pub(crate) m: usize,
    /// Degrees with the draw that is the first beyond each.
    pub(crate) degrees: Vec<(usize, u64)>,
    pub(crate) sampling: Sampling,
    pub(crate) systematic: bool,
}

#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Sampling {
    Rfc,
    Separate(u32),
    Even(u32),
}

/// Products by logarithms, over x^8 + x^4 + x^3 + x^2 + 1.
pub(crate) struct Gf {
    exp: [u8; 510],
    log: [usize; 256],
}

impl Gf {
    pub(crate) fn new() -> Self {
        let (mut exp, mut log, mut x) = ([0; 510], [0; 256], 1_u32);
        for power in 0..255 {
            exp[power] = x as u8;
            exp[power + 255] = x as u8;
            log[x as usize] = power;
            x <<= 1;
            if x > 255 {
                x ^= 0x11D;
            }
        }
        Self { exp, log }
    }

    pub(crate) fn mul(&self, a: u8, b: u8) -> u8 {
        if a == 0 || b == 0 { 0 } else { self.exp[self.log[a as usize] + self.log[b as usize]] }
    }

    fn inv(&self, a: u8) -> u8 {
        self.exp[255 - self.log[a as usize]]
    }

    /// The sum of `terms`, coefficients with vectors of `len` bytes.
    pub(crate) fn sum<'a>(&self, len: usize, terms: impl Iterator<Item = (u8, &'a [u8])>) -> Vec<u8> {
        let mut sum = vec![0; len];
        for (a, x) in terms {
            sum.iter_mut().zip(x).for_each(|(sum, &x)| *sum ^= self.mul(a, x));
        }
        sum
    }
}

/// TinyMT32 as RFC 8682's figure 1 has it.
struct Tiny([u32; 4]);

impl Tiny {
    fn new(seed: u32) -> Self {
        let mut s = [seed, 0x8F70_11EE, 0xFC78_FF1F, 0x3793_FDFF];
        for i in 1..8_usize {
            let previous = s[(i - 1) & 3];
            s[i & 3] ^= (i as u32).wrapping_add((previous ^ (previous >> 30)).wrapping_mul(1_812_433_253));
        }
        let mut tiny = Self(s);
        for _ in 0..8 {
            tiny.next();
        }
        tiny
    }

    fn next(&mut self) -> u32 {
        let s = &mut self.0;
        let (mut y, mut x) = (s[3], (s[0] & 0x7FFF_FFFF) ^ s[1] ^ s[2]);
        x ^= x << 1;
        y ^= (y >> 1) ^ x;
        s[0] = s[1];
        s[1] = s[2];
        s[2] = x ^ (y << 10);
        s[3] = y;
        if y % 2 == 1 {
            s[1] ^= 0x8F70_11EE;
            s[2] ^= 0xFC78_FF1F;
        }
        let sum = s[0].wrapping_add(s[2] >> 8);
        let out = s[3] ^ sum;
        if sum % 2 == 1 { out ^ 0x3793_FDFF } else { out }
    }
}

/// SplitMix64, of a session, a BID and a purpose.
struct Split(u64);

impl Split {
    fn new(session: u32, bid: u16, purpose: u16) -> Self {
        Self(u64::from(session) * 0x1_0000_0000 + u64::from(bid) * 0x1_0000 + u64::from(purpose))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Bytes, eight from each number, the lowest first; what is left of the last is dropped.
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

impl Code {
    fn session(&self) -> u32 {
        match self.sampling {
            Sampling::Rfc => 0,
            Sampling::Separate(session) | Sampling::Even(session) => session,
        }
    }

    /// S and H.
    fn checks(&self) -> (usize, usize) {
        if self.systematic || !matches!(self.sampling, Sampling::Even(_)) {
            return (0, 0);
        }
        let k = self.k as f64;
        let mut s = (0.0101 * k + (3.0 * k).sqrt()).floor().max(3.0) as usize;
        while (2..s).any(|d| s.is_multiple_of(d)) {
            s += 1;
        }
        (s, (k.ln().floor() as usize).max(5))
    }

    /// Source, sparse and dense symbols.
    pub(crate) fn columns(&self) -> usize {
        let (s, h) = self.checks();
        self.k + s + h
    }

    /// The equations of the precode, whose sums are zero.
    pub(crate) fn equations(&self) -> Vec<Vec<u8>> {
        let ((s, h), n) = (self.checks(), self.columns());
        let mut rows = vec![vec![0; n]; s + h];
        if s == 0 {
            return rows;
        }
        (0..self.k).for_each(|symbol| {
            let step = 1 + (symbol / s) % (s - 1);
            [symbol, symbol + step, symbol + 2 * step].into_iter().for_each(|sum| rows[sum % s][symbol] = 1);
        });
        let source = Split::new(self.session(), 0, 4).bytes(h * self.k);
        let sparse = Split::new(self.session(), 1, 4).bytes(h * s);
        for sum in 0..h {
            rows[s + sum][..self.k].copy_from_slice(&source[sum * self.k..][..self.k]);
            rows[s + sum][self.k..self.k + s].copy_from_slice(&sparse[sum * s..][..s]);
        }
        for (sum, row) in rows.iter_mut().enumerate() {
            row[self.k + sum] = 1;
        }
        rows
    }

    /// The coefficients that a batch's packets have of all symbols.
    pub(crate) fn batch(&self, bid: u16) -> Vec<Vec<u8>> {
        let (n, m) = (self.columns(), self.m);
        let first_coded = if self.systematic { self.k.div_ceil(m) } else { 0 };
        let mut packets = vec![vec![0; n]; m];
        let coefficients =
            |packet: usize, degree: usize| Split::new(self.session(), bid, 256 + packet as u16).bytes(degree);
        if usize::from(bid) < first_coded {
            let symbols: Vec<usize> =
                (usize::from(bid) * m..self.k.min((usize::from(bid) + 1) * m)).collect();
            for (packet, row) in packets.iter_mut().enumerate() {
                match symbols.get(packet) {
                    Some(&symbol) => row[symbol] = 1,
                    None => symbols
                        .iter()
                        .zip(coefficients(packet, symbols.len()))
                        .for_each(|(&symbol, coefficient)| row[symbol] = coefficient),
                }
            }
            return packets;
        }
        if let Sampling::Even(session) = self.sampling {
            let symbols = self.even(usize::from(bid) - first_coded, session);
            for (packet, row) in packets.iter_mut().enumerate() {
                for (&symbol, coefficient) in symbols.iter().zip(coefficients(packet, symbols.len())) {
                    row[symbol] = coefficient;
                }
            }
            return packets;
        }
        let seed = |purpose| match self.sampling {
            Sampling::Separate(session) => Split::new(session, bid, purpose).next() as u32,
            _ => u32::from(bid),
        };
        let degree = self.degree(Tiny::new(seed(1)).next()).min(n);
        let (mut random, mut symbols) = (Tiny::new(seed(2)), Vec::new());
        while symbols.len() < degree {
            let symbol = random.next() as usize % n;
            if !symbols.contains(&symbol) {
                symbols.push(symbol);
            }
        }
        for symbol in symbols {
            for row in &mut packets {
                row[symbol] = (random.next() % 256) as u8;
            }
        }
        packets
    }

    fn degree(&self, draw: u32) -> usize {
        self.degrees.iter().find(|&&(_, beyond)| u64::from(draw) < beyond).expect("every draw has a degree").0
    }

    /// The symbols of the `coded`-th batch that is coded, by going through all before it.
    fn even(&self, coded: usize, session: u32) -> Vec<usize> {
        let n = self.columns();
        let start = Split::new(session, 0, 1).next() as u32;
        let degree = |batch: usize| {
            if self.systematic {
                (n / (batch + 1)).max(n.min(256))
            } else {
                let draw = start.wrapping_add((batch as u32).wrapping_mul(0x9E37_79B9));
                self.degree(draw).max(2 * self.m).min(n)
            }
        };
        let (mut pass, mut at) = (0_u64, 0);
        for batch in 0..coded {
            at += degree(batch);
            if at >= n {
                (pass, at) = (pass + 1, 0);
            }
        }
        let mut order: Vec<usize> = (0..n).collect();
        let mut random = Split(Split::new(session, 0, 3).0 ^ pass << 48);
        for left in (2..=n).rev() {
            order.swap(left - 1, ((random.next() >> 32) as usize * left) >> 32);
        }
        (0..degree(coded)).map(|i| order[(at + i) % n]).collect()
    }

    /// All symbols, from those of the source.
    pub(crate) fn symbols(&self, gf: &Gf, source: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut symbols = source.to_vec();
        for (sum, row) in self.equations().iter().enumerate() {
            let known = row[..self.k + sum].iter().copied().zip(symbols.iter().map(|symbol| &symbol[..]));
            symbols.push(gf.sum(source[0].len(), known));
        }
        symbols
    }
}

/// Gaussian elimination of equations as they come, payloads beside them.
pub(crate) struct Dense<'a> {
    gf: &'a Gf,
    columns: usize,
    /// By pivot; each begins with a 1 there.
    rows: Vec<Option<Vec<u8>>>,
    pub(crate) rank: usize,
}

impl<'a> Dense<'a> {
    pub(crate) fn new(gf: &'a Gf, columns: usize) -> Self {
        Self { gf, columns, rows: vec![None; columns], rank: 0 }
    }

    pub(crate) fn push(&mut self, coefficients: &[u8], payload: &[u8]) {
        let mut row = [coefficients, payload].concat();
        for pivot in 0..self.columns {
            if row[pivot] == 0 {
                continue;
            }
            let factor = row[pivot];
            if let Some(known) = &self.rows[pivot] {
                row.iter_mut().zip(known).for_each(|(to, &from)| *to ^= self.gf.mul(factor, from));
            } else {
                let inverse = self.gf.inv(factor);
                row.iter_mut().for_each(|a| *a = self.gf.mul(*a, inverse));
                self.rows[pivot] = Some(row);
                self.rank += 1;
                return;
            }
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.rank == self.columns
    }

    /// All symbols, once complete.
    pub(crate) fn solve(&self) -> Vec<Vec<u8>> {
        let mut symbols: Vec<Vec<u8>> = vec![Vec::new(); self.columns];
        for pivot in (0..self.columns).rev() {
            let row = self.rows[pivot].as_ref().expect("complete");
            let later = (pivot + 1..self.columns).map(|column| (row[column], &symbols[column][..]));
            let payload = &row[self.columns..];
            symbols[pivot] = self.gf.sum(payload.len(), later.chain([(1, payload)]));
        }
        symbols
    }
}
