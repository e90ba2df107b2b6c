//! The files of a member that stores and forwards: those that it publishes, and those that come.

use std::sync::Arc;

use hopcast_core::{Buffer, Instant};
use log::Level;

use super::StoreForward;
use super::machine::FILES;
use super::wire::{File, overhead};
use crate::group::disk::{Command, Contents, Event};
use crate::group::names;
use crate::group::wire::Refusal;

impl StoreForward {
    pub(super) fn on_disk(&mut self, now: Instant, event: Event) {
        match event {
            Event::Known { from, ids } => {
                let written = self.arrivals.remember(from, ids);
                written.into_iter().for_each(|id| self.forget_waiting(from, id));
            }
            Event::Ready => self.is_ready = true,
            Event::Found { id, name, size } => {
                let (room, max) = self.config.rooms[FILES];
                if size + overhead(name.len()) > max {
                    self.counts.files_refused += 1;
                    let line = format!(
                        "`{name}` is not sent: it has {size} bytes, and a file may have {max}, half of the {room} that a site \
                         holds; `memory` and the option `cache` say how many"
                    );
                    self.say(Level::Warn, line);
                } else {
                    self.outgoing.found(id, name, size);
                }
            }
            Event::Gone(id) => {
                if self.outgoing.gone(id) {
                    self.keep_published(id, false);
                }
            }
            Event::ReadWhole { id, changed, bytes } => self.publish(now, id, changed, bytes),
            Event::Stored { from, id, name } => {
                let bytes = self.arrivals.written(from, id);
                self.used += bytes;
                self.forget_waiting(from, id);
                let came = &mut self.came[from];
                (came.files, came.bytes) = (came.files + 1, came.bytes + bytes);
                let line = format!("`{name}` from `{}` is here", self.config.members[from].name);
                self.say(Level::Info, line);
            }
            Event::Overtaken { from, id } => {
                self.arrivals.written(from, id);
                self.forget_waiting(from, id);
                self.counts.files_overtaken += 1;
            }
            Event::Failed { from, id, why, .. } => {
                if self.arrivals.failed(now, from, id, why) {
                    self.forget_waiting(from, id);
                }
            }
            Event::Used(bytes) => self.used = bytes,
            Event::Trouble(line) => self.trouble(now, line),
            // Of files by pieces, which this machine does not order.
            Event::Read { .. } | Event::Written { .. } => {}
        }
    }

    /// Publishes a file that was read.
    fn publish(&mut self, now: Instant, id: u64, changed: u64, bytes: Vec<u8>) {
        let Some(name) = self.outgoing.was_read(id) else { return };
        let publisher = self.config.number;
        let file = File { publisher, id, changed, name: &name, bytes: &bytes }.emit();
        drop(bytes);
        if self.is_taken(now, FILES, file) {
            self.counts.files_published += 1;
            self.keep_published(id, true);
        } else {
            self.counts.files_refused += 1;
        }
    }

    /// A file that has come whole, for the first time in whatever run.
    pub(super) fn on_file(&mut self, now: Instant, payload: Buffer) {
        let payload = Arc::new(payload);
        let Ok(file) = File::parse(&payload) else {
            self.counts.malformed += 1;
            return;
        };
        let Some(from) = self.member_of(file.publisher) else {
            self.counts.foreign += 1;
            return;
        };
        let quota = self.config.quota;
        let fault = match names::check(file.name) {
            Err(fault) => Some(fault.to_string()),
            Ok(()) if file.bytes.len() as u64 > quota => Some(Refusal::TooLarge.words().to_owned()),
            Ok(()) => None,
        };
        if let Some(fault) = fault {
            self.arrivals.given_up += 1;
            let line = format!("a file of `{}` is not taken: {fault}", self.config.members[from].name);
            self.trouble(now, line);
            return;
        }
        let before = self.arrivals.given_up;
        let bytes = Contents::end(&payload, file.bytes.len());
        if self.arrivals.came(from, file.id, file.name, file.changed, bytes) {
            let key = self.waiting_key(from, file.id);
            self.put(key, payload);
            self.write_next(now);
        } else if self.arrivals.given_up > before {
            let line =
                format!("files of `{}` are given up: too many wait for room", self.config.members[from].name);
            self.trouble(now, line);
        }
    }

    /// Hands the disk a file that waits, if there is room.
    pub(super) fn write_next(&mut self, now: Instant) {
        if !self.is_ready {
            return;
        }
        let room = self.config.quota.saturating_sub(self.used);
        if let Some((from, id, file)) = self.arrivals.next(now, room) {
            let (name, changed, bytes) = (file.name, file.changed, file.bytes);
            self.order(Command::Deliver { from, id, name, changed, bytes });
            self.is_full = false;
        } else if self.arrivals.lacks_room(room) && !std::mem::replace(&mut self.is_full, true) {
            self.say(Level::Warn, "files wait: the quota has no room for them".to_owned());
        }
    }

    pub(super) fn order(&self, command: Command) {
        if let Some(disk) = &self.disk {
            // Its thread ends with this one.
            let _ = disk.commands.send(command);
        }
    }
}
