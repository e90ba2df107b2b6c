//! An object that is being received.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::config::Framing;
use super::asked::Asked;
use super::block::Block;
use super::held::{self, Held};
use super::stream::{Piece, Stream};
use crate::norm::fec::{Blocks, Codec};
use crate::norm::wire::{Flags, Fti, StreamHeader};
use crate::runs::Runs;

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Known from the first packet that bears it.
    pub(super) layout: Option<Layout>,
    /// Of a stream of which only the info was heard, so that it is not known where to begin.
    pub(super) fti: Option<Fti>,
    pub(super) flags: Flags,
    info: Option<Vec<u8>>,
    /// Blocks of which something has arrived, and which are not complete.
    blocks: BTreeMap<u32, Block>,
    /// Blocks that nothing has arrived of, and that were asked for.
    asked: BTreeMap<u32, Asked>,
    pub(super) asked_info: Asked,
    /// Contents of blocks that are complete, but those of a stream that were handed up.
    complete: BTreeMap<u32, Vec<Vec<u8>>>,
    /// Blocks that are complete or were given up.
    over: Runs,
    /// Blocks before it need nothing more.
    next: u32,
    /// The last block of which was heard.
    pub(super) heard: Option<u32>,
    /// Nothing more is wanted of it: handed up, given up or refused.
    pub(super) is_done: bool,
    held: Held,
}

/// How an object is cut.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) fti: Fti,
    contents: Contents,
}

#[derive(Clone, Debug)]
enum Contents {
    Whole(Blocks),
    Stream(Stream),
}

impl Object {
    pub(super) fn new() -> Self {
        Self {
            layout: None,
            fti: None,
            flags: Flags::default(),
            info: None,
            blocks: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_info: Asked::default(),
            complete: BTreeMap::new(),
            over: Runs::default(),
            next: 0,
            heard: None,
            is_done: false,
            held: Held { incomplete: held::OBJECT, decoded: 0 },
        }
    }

    /// Memory that it takes.
    pub(super) fn held(&self) -> Held {
        self.held
    }

    /// Number of source symbols of a block, if it is known.
    pub(super) fn source(&self, block: u32) -> Option<u16> {
        let layout = self.layout.as_ref()?;
        match &layout.contents {
            Contents::Whole(blocks) => Some(blocks.source(block)),
            Contents::Stream(_) => Some(layout.fti.source),
        }
    }

    /// Parity symbols that a block can have.
    pub(super) fn parity(&self) -> u16 {
        self.layout.as_ref().map_or(0, |layout| layout.fti.parity)
    }

    /// Number of blocks, if it is known.
    pub(super) fn count(&self) -> Option<u32> {
        match &self.layout.as_ref()?.contents {
            Contents::Whole(blocks) => Some(blocks.count()),
            Contents::Stream(_) => None,
        }
    }

    /// Whether the info is missing.
    pub(super) fn lacks_info(&self) -> bool {
        self.flags.contains(Flags::INFO) && self.info.is_none()
    }

    /// Whether anything of it was heard.
    pub(super) fn is_known(&self) -> bool {
        self.heard.is_some() || self.layout.is_some() || self.info.is_some()
    }

    /// Whether a block needs nothing more.
    pub(super) fn has(&self, block: u32) -> bool {
        block < self.next || self.over.contains(block.into())
    }

    /// The first block that needs something.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Blocks of a range that need something, ascending.
    pub(super) fn lacking(&self, blocks: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.over.gaps(blocks.start.max(self.next).into()..blocks.end.into()).map(|block| block as u32)
    }

    pub(super) fn block(&self, block: u32) -> Option<&Block> {
        self.blocks.get(&block)
    }

    /// Bytes that a block will take beyond those that are held of it, until it is decoded.
    pub(super) fn bytes_to_come(&self, block: u32) -> u64 {
        let (Some(layout), Some(source)) = (&self.layout, self.source(block)) else { return held::OBJECT };
        let symbol = u64::from(layout.fti.segment) + held::SYMBOL;
        match self.block(block) {
            Some(found) => u64::from(found.lacking(source)) * symbol,
            None => held::BLOCK + u64::from(source) * symbol,
        }
    }

    /// Numbers of the blocks of which something is here.
    pub(super) fn partial(&self) -> Vec<u32> {
        self.blocks.keys().copied().collect()
    }

    /// Source symbols that are missing of a block up to `last`, without those that were given up.
    pub(super) fn missing_until(&self, block: u32, last: u16) -> Vec<u16> {
        let first = match self.layout.as_ref().map(|layout| &layout.contents) {
            Some(Contents::Stream(stream)) if stream.block == block => stream.symbol,
            _ => 0,
        };
        let has = |symbol: &u16| self.block(block).is_some_and(|found| found.symbols.contains_key(symbol));
        (first..=last).filter(|symbol| !has(symbol)).collect()
    }

    /// State of the requests for a block.
    pub(super) fn asked(&mut self, block: u32) -> &mut Asked {
        match self.blocks.get_mut(&block) {
            Some(state) => &mut state.asked,
            None => {
                if !self.asked.contains_key(&block) {
                    self.held.incomplete += held::SYMBOL;
                }
                self.asked.entry(block).or_default()
            }
        }
    }

    /// The same, to be looked at.
    pub(super) fn asked_of(&self, block: u32) -> Asked {
        let whole = || self.asked.get(&block).copied().unwrap_or_default();
        self.blocks.get(&block).map_or_else(whole, |state| state.asked)
    }

    /// Takes the info. False if it is here.
    pub(super) fn take_info(&mut self, info: &[u8]) -> bool {
        if self.info.is_some() {
            return false;
        }
        self.held.incomplete += info.len() as u64;
        self.info = Some(info.to_vec());
        self.asked_info.answered();
        true
    }

    /// Nobody has the info any more.
    pub(super) fn give_up_info(&mut self) {
        self.flags = self.flags.without(Flags::INFO);
    }

    /// Sets the layout; a stream begins with block `first`. False if it is one that we cannot take.
    pub(super) fn set_layout(&mut self, fti: Fti, max_object: u64, framing: Framing, first: u32) -> bool {
        if self.layout.is_some() {
            return true;
        }
        if Codec::check(&fti).is_err() {
            return false;
        }
        let contents = if self.flags.contains(Flags::STREAM) {
            self.next = first;
            Contents::Stream(Stream::new(framing, first))
        } else {
            match Blocks::of(&fti) {
                Ok(blocks) if fti.object_size <= max_object => Contents::Whole(blocks),
                Ok(_) | Err(_) => return false,
            }
        };
        self.layout = Some(Layout { fti, contents });
        // What came before may be of another one.
        for (block, found) in std::mem::take(&mut self.blocks) {
            self.held.incomplete -= found.held();
            let fits = |(&symbol, bytes): (&u16, &Vec<u8>)| self.fits(block, symbol, bytes.len());
            if block >= self.next && found.symbols.iter().all(fits) {
                self.held.incomplete += found.held();
                self.blocks.insert(block, found);
            }
        }
        true
    }

    /// Whether there can be a symbol of this length.
    pub(super) fn fits(&self, block: u32, symbol: u16, len: usize) -> bool {
        let Some(layout) = &self.layout else { return true };
        let segment = usize::from(layout.fti.segment);
        match &layout.contents {
            Contents::Whole(blocks) => {
                let source = blocks.source(block);
                source > 0
                    && symbol < source + layout.fti.parity
                    && if symbol < source { len == blocks.segment_len(block, symbol) } else { len <= segment }
            }
            Contents::Stream(_) => {
                symbol < layout.fti.source + layout.fti.parity && len <= segment + StreamHeader::LEN
            }
        }
    }

    /// Takes a symbol of a block that needs some. False if it is here.
    pub(super) fn insert(&mut self, block: u32, symbol: u16, bytes: &[u8]) -> bool {
        let state = self.blocks.entry(block).or_insert_with(|| {
            self.held.incomplete += held::BLOCK;
            let asked = self.asked.remove(&block);
            self.held.incomplete -= asked.map_or(0, |_| held::SYMBOL);
            Block { asked: asked.unwrap_or_default(), ..Block::default() }
        });
        if state.symbols.contains_key(&symbol) {
            return false;
        }
        state.asked.progress();
        state.symbols.insert(symbol, bytes.to_vec());
        self.held.incomplete += held::SYMBOL + bytes.len() as u64;
        true
    }

    /// Whether enough of a block has arrived to decode it.
    pub(super) fn is_decodable(&self, block: u32) -> bool {
        self.source(block).is_some_and(|source| {
            source > 0 && self.block(block).is_some_and(|found| found.is_complete(source))
        })
    }

    /// Decodes a block of which enough has arrived: the number of its bytes.
    pub(super) fn decode(&mut self, block: u32, codec: &Codec) -> u64 {
        let Some(source) = self.source(block) else { return 0 };
        let Some(found) = self.blocks.remove(&block) else { return 0 };
        self.held.incomplete -= found.held();
        let Some(symbols) = found.decode(source, codec) else { return 0 };
        self.forget_asked(block);
        let bytes = len_of(&symbols);
        *self.of_contents() += bytes;
        self.complete.insert(block, symbols);
        self.over.insert(block.into());
        // Those of a stream go on when they are handed up.
        while self.count().is_some() && self.over.contains(self.next.into()) {
            self.next += 1;
        }
        self.over.forget_below(self.next.into());
        bytes
    }

    /// Bytes held of what was decoded: of a stream, it waits for what is missing, for which there is no other bound.
    fn of_contents(&mut self) -> &mut u64 {
        if self.count().is_some() { &mut self.held.decoded } else { &mut self.held.incomplete }
    }

    fn forget_asked(&mut self, block: u32) {
        self.held.incomplete -= self.asked.remove(&block).map_or(0, |_| held::SYMBOL);
    }

    /// The contents and the info, if all blocks have arrived and the info.
    pub(super) fn take_whole(&mut self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let Contents::Whole(blocks) = &self.layout.as_ref()?.contents else { return None };
        if self.next < blocks.count() || self.lacks_info() || self.is_done {
            return None;
        }
        let mut bytes = Vec::with_capacity(blocks.size() as usize);
        for (block, symbols) in std::mem::take(&mut self.complete) {
            for (place, symbol) in symbols.iter().enumerate() {
                // Decoded symbols are as long as the longest of their block.
                bytes.extend_from_slice(&symbol[..symbol.len().min(blocks.segment_len(block, place as u16))]);
            }
        }
        let info = self.info.take();
        self.finish();
        Some((bytes, info))
    }

    /// Hands up the next bytes of a stream.
    pub(super) fn advance_stream(&mut self, up: &mut dyn FnMut(Piece)) {
        let Some(Layout { contents: Contents::Stream(stream), fti }) = &mut self.layout else { return };
        let per_block = fti.source;
        let mut in_gap = false;
        while !stream.ended {
            let (block, place) = (stream.block, stream.symbol);
            let decoded = self.complete.get(&block).and_then(|symbols| symbols.get(usize::from(place)));
            let partial = || self.blocks.get(&block).and_then(|found| found.symbols.get(&place));
            match decoded.or_else(partial) {
                Some(symbol) => {
                    // What is not what comes next is somebody else's, or an error of the sender: it is left out.
                    let _ = stream.take(symbol, per_block, up);
                    in_gap = false;
                }
                None if self.over.contains(block.into()) => {
                    if !std::mem::replace(&mut in_gap, true) {
                        up(Piece::Gap);
                    }
                    // Each gap ends a stream of bytes, so that one with many has its rest left out.
                    match stream.is_messages() {
                        true => stream.skip_symbol(per_block),
                        false => _ = stream.skip_to(block.wrapping_add(1)),
                    }
                }
                None => break,
            }
            if stream.block != block {
                let decoded = self.complete.remove(&block).map_or(0, |symbols| len_of(&symbols));
                let partial = self.blocks.remove(&block).map_or(0, |found| found.held());
                let asked = self.asked.remove(&block).map_or(0, |_| held::SYMBOL);
                self.held.incomplete -= decoded + partial + asked;
                self.next = stream.block;
                self.over.forget_below(self.next.into());
            }
        }
        if stream.ended {
            self.finish();
        }
    }

    /// A stream goes on at `block`. True if that leaves something out.
    pub(super) fn skip_to(&mut self, block: u32) -> bool {
        let Some(Layout { contents: Contents::Stream(stream), .. }) = &mut self.layout else { return false };
        if !stream.skip_to(block) {
            return false;
        }
        self.next = block;
        self.over.forget_below(block.into());
        let later = self.complete.split_off(&block);
        let decoded: u64 =
            std::mem::replace(&mut self.complete, later).values().map(|found| len_of(found)).sum();
        let later = self.blocks.split_off(&block);
        let partial: u64 = std::mem::replace(&mut self.blocks, later).values().map(Block::held).sum();
        let later = self.asked.split_off(&block);
        let asked = std::mem::replace(&mut self.asked, later).len() as u64 * held::SYMBOL;
        self.held.incomplete -= decoded + partial + asked;
        true
    }

    /// Nobody has what is missing of a block any more, of the stream's last block up to symbol `end`. False if nothing
    /// is left of the object then; a stream leaves out what is missing.
    pub(super) fn give_up(&mut self, block: u32, end: Option<u16>, up: &mut dyn FnMut(Piece)) -> bool {
        let Some(Layout { contents: Contents::Stream(stream), fti }) = &mut self.layout else { return false };
        let Some(end) = end.filter(|&end| end.saturating_add(1) < fti.source) else {
            self.over.insert(block.into());
            self.forget_asked(block);
            return true;
        };
        if stream.block != block {
            // What comes before has its turn first.
            self.asked(block).progress();
            return true;
        }
        let mut in_gap = false;
        while stream.block == block && stream.symbol <= end {
            match self.blocks.get(&block).and_then(|found| found.symbols.get(&stream.symbol)) {
                Some(symbol) => {
                    let _ = stream.take(symbol, fti.source, up);
                    in_gap = false;
                }
                None => {
                    if !std::mem::replace(&mut in_gap, true) {
                        up(Piece::Gap);
                    }
                    stream.skip_symbol(fti.source);
                }
            }
        }
        true
    }

    /// Nothing more is wanted.
    pub(super) fn finish(&mut self) {
        self.is_done = true;
        self.blocks.clear();
        self.asked.clear();
        self.complete.clear();
        self.info = None;
        self.held = Held::default();
    }
}

fn len_of(symbols: &[Vec<u8>]) -> u64 {
    symbols.iter().map(|symbol| held::SYMBOL + symbol.len() as u64).sum()
}
