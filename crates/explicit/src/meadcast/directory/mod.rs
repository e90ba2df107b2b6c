//! A directory of a group's members at its sender, which hosts join and leave by messages.
//!
//! The thesis' sender has a file of receivers, and leaves joining at run time for later. Here a [`Member`] says to the
//! sender that it joins, says so again before its membership ends by itself, and says that it leaves. The sender's
//! [directory](DirectorySender) keeps who is a member. The simplest form of a directory, a list that does not change,
//! needs neither.
//!
//! ```text
//! member                          sender
//!   join, nonce a, no cookie        →      keeps nothing
//!     ←      challenge, nonce a, cookie    to the address that asks
//!   join, nonce a, cookie           →      keeps the member for the time of holding
//!     ←      accepted, nonce a, time of holding
//! ```
//!
//! Nobody can make a host at another address a member, or take it out: a request counts with a cookie that was sent to
//! the address that it is about. Cookies are codes of address, group and time under a secret of the sender, which
//! therefore keeps nothing of who has not answered. They are good for one time of holding or two, so that later
//! requests of a member need no challenge. A member believes an answer that repeats the nonce of its last request.
//!
//! # Bounds
//!
//! All messages have the same length, so an answer is no longer than what it answers, and answers are sent at a rate. A
//! directory has a maximum number of members. Whoever is on the way to an address sees its cookies, and can speak for
//! it.
//!
//! # Departures
//!
//! The papers say that a sender knows its receivers, and not how. These messages are ours.

mod member;
mod registry;
#[cfg(test)]
mod tests;
mod wire;

pub use member::Member;
pub use registry::{Config, Cookies, DirectorySender};
pub use wire::{HOOK, Kind, LEN, Message, PORT};
