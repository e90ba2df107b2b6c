//! `fec`: datagrams protected by a forward error correction code between the flow's ends.

use hopcast_coded::Repeat;
use hopcast_config::decode::{choice, whole};

use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options, shown};
use crate::transport::{End, Feedback, PortKind, Ports, Row, Transport};

pub(super) static FEC: Row = Row {
    name: "fec",
    about: "datagrams with forward error correction from end to end: each is sent several times",
    offers: Ports(&[PortKind::Datagram]),
    groups: true,
    feedback: Feedback::None,
    coded: true,
    holds_back: false,
    options: || OPTIONS.docs(&Fec::default()),
    read: |row, options| OPTIONS.layer(row, options, Fec::default()),
    ..Row::BASE
};

/// The settings of both ends.
#[derive(Clone, Debug)]
struct Fec {
    copies: u8,
}

impl Default for Fec {
    fn default() -> Self {
        Self { copies: 2 }
    }
}

static OPTIONS: Options<Fec> = Options(&[
    Opt {
        key: "code",
        about: "The code. `repeat` sends each datagram several times.",
        form: Form::OneOf(&["repeat"]),
        set: |_, node, key| choice(node, key, &["repeat"]).map(|_| ()),
        show: |_| "repeat".to_owned(),
    },
    Opt {
        key: "copies",
        about: "How often each datagram is sent, 1 to 10. Each copy costs the whole rate again; n copies turn a loss of p \
                into one of p to the n-th.",
        form: Form::Count,
        set: |fec, node, key| whole(node, key, 1..=10).map(|found| fec.copies = found as u8),
        show: |fec| shown(&fec.copies),
    },
]);

impl Transport for Fec {
    fn overhead(&self, _: u64) -> u64 {
        Repeat::HEADER as u64
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        end.attach("fec", Box::new(Repeat::new(self.copies))).map(Some)
    }
}
