//! A file crosses three lossy links and two relays:
//! `cargo run --release -p hopcast-code --example file_over_relays [file]`.
//!
//! The source sends each generation once as it is and then combinations. Every link loses 30 % of what is sent on it.
//! The relays recode: they send combinations of whatever they have received, and never decode. The receiver decodes,
//! and the hashes are compared. Without a file, it makes up a megabyte.

use std::process::ExitCode;

use hopcast_code::rlnc::{Coding, Coefficients, Decoder, Density, Encoder, Packet, Recoder, Shape};
use sha2::{Digest, Sha256};

const SYMBOLS: usize = 64;
const SYMBOL_LEN: usize = 1_400;
const LOSS_PERCENT: u64 = 30;

/// Source, relay, relay: each sends on the link of its number.
const LINKS: usize = 3;

#[derive(Default)]
struct Link {
    sent: u64,
    arrived: u64,
}

fn main() -> ExitCode {
    let file = match std::env::args().nth(1).map(std::fs::read) {
        Some(Ok(file)) => file,
        Some(Err(error)) => {
            eprintln!("the file cannot be read: {error}");
            return ExitCode::FAILURE;
        }
        None => {
            let mut random = Coefficients::new(2026);
            (0..1 << 20).map(|_| random.bits() as u8).collect()
        }
    };
    let shape = Shape::new(SYMBOLS, SYMBOL_LEN).expect("within the limits");
    let mut links: [Link; LINKS] = Default::default();
    let mut received = Vec::with_capacity(file.len());
    let mut channel = Channel(Coefficients::new(1));
    for (generation, source) in file.chunks(SYMBOLS * SYMBOL_LEN).enumerate() {
        let decoded = carry(shape, generation as u32, source, &mut links, &mut channel);
        received.extend_from_slice(&decoded[..source.len()]);
    }

    let (sent, arrived) = (Sha256::digest(&file), Sha256::digest(&received));
    println!("{} bytes in generations of {SYMBOLS} symbols of {SYMBOL_LEN} bytes", file.len());
    println!("{:<18} {:>8} {:>8} {:>7}", "link", "sent", "arrived", "loss");
    for (link, name) in links.iter().zip(["source - relay", "relay - relay", "relay - receiver"]) {
        let loss = 100.0 * (1.0 - link.arrived as f64 / link.sent as f64);
        println!("{name:<18} {:>8} {:>8} {loss:>5.1} %", link.sent, link.arrived);
    }
    let symbols = file.len().div_ceil(SYMBOL_LEN) as f64;
    println!("packets a link for each symbol: {:.3}", links[0].sent as f64 / symbols);
    println!("  the best that recoding can do: {:.3}", 1.0 / survives(1));
    println!("  the best without recoding:     {:.3}", 1.0 / survives(LINKS as i32));
    println!("sha-256 of the source   {}", hex(&sent));
    println!("sha-256 of the receiver {}", hex(&arrived));
    if sent == arrived { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Carries one generation over all links; returns the bytes that the receiver decoded.
fn carry(
    shape: Shape,
    generation: u32,
    source: &[u8],
    links: &mut [Link; LINKS],
    channel: &mut Channel,
) -> Vec<u8> {
    let mut encoder: Encoder = Encoder::new(shape);
    for symbol in 0..SYMBOLS {
        // The file's end is padded with zeros.
        let mut padded = [0; SYMBOL_LEN];
        let rest = source.get(symbol * SYMBOL_LEN..).unwrap_or_default();
        let len = rest.len().min(SYMBOL_LEN);
        padded[..len].copy_from_slice(&rest[..len]);
        encoder.push(&padded).expect("a symbol that fits");
    }
    let mut relays: [Recoder; 2] = [1, 2].map(|seed| Recoder::new(shape, generation, SYMBOLS, seed));
    let mut receiver: Decoder = Decoder::new(shape, generation);
    let mut coefficients = Coefficients::new(u64::from(generation));
    let (mut vector, mut payload) = (vec![0; SYMBOLS], vec![0; SYMBOL_LEN]);
    let mut round = 0;
    while !receiver.is_complete() {
        // The end of the path first, so that a packet takes a round for each link.
        for hop in (0..LINKS).rev() {
            let coding = if hop > 0 {
                if relays[hop - 1].recode(&mut vector, &mut payload).is_err() {
                    continue;
                }
                Coding::Vector(&vector)
            } else if let Ok(symbol) = encoder.symbol(round) {
                payload.copy_from_slice(symbol);
                Coding::Symbol(round)
            } else {
                encoder
                    .encode_random(&mut coefficients, Density::FULL, &mut vector, &mut payload)
                    .expect("buffers that fit");
                Coding::Vector(&vector)
            };
            links[hop].sent += 1;
            if channel.loses() {
                continue;
            }
            links[hop].arrived += 1;
            let packet = Packet { generation, coding, payload: &payload };
            let outcome = match relays.get_mut(hop) {
                Some(relay) => relay.push(&packet),
                None => receiver.push(&packet),
            };
            outcome.expect("a packet that fits");
        }
        round += 1;
    }
    let mut decoded = vec![0; SYMBOLS * SYMBOL_LEN];
    while let Some((index, symbol)) = receiver.poll() {
        decoded[index * SYMBOL_LEN..][..SYMBOL_LEN].copy_from_slice(symbol);
    }
    decoded
}

struct Channel(Coefficients);

impl Channel {
    fn loses(&mut self) -> bool {
        self.0.bits() % 100 < LOSS_PERCENT
    }
}

/// The fraction of packets that crosses `links` links.
fn survives(links: i32) -> f64 {
    (1.0 - LOSS_PERCENT as f64 / 100.0).powi(links)
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
