//! The fields of which headers are made.

use hopcast_core::{Malformed, Reader, Writer};
use hopcast_wire::ethernet::Mac;

/// A field of a header.
pub(super) trait Field: Sized {
    /// Length in bytes.
    const LEN: usize;
    fn read(reader: &mut Reader<'_>, name: &'static str) -> Result<Self, Malformed>;
    fn write(&self, writer: &mut Writer<'_>);
}

macro_rules! number {
    ($type:ident, $len:literal) => {
        impl Field for $type {
            const LEN: usize = $len;
            #[inline]
            fn read(reader: &mut Reader<'_>, name: &'static str) -> Result<Self, Malformed> {
                reader.$type(name)
            }
            #[inline]
            fn write(&self, writer: &mut Writer<'_>) {
                writer.$type(*self);
            }
        }
    };
}

number!(u8, 1);
number!(u16, 2);
number!(u32, 4);

impl Field for Mac {
    const LEN: usize = 6;
    #[inline]
    fn read(reader: &mut Reader<'_>, name: &'static str) -> Result<Self, Malformed> {
        reader.array(name)
    }
    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(self);
    }
}

/// Defines a header: its fields in their order, each with the number of reserved bytes behind it, if there are any.
macro_rules! header {
    (
        $(#[$about:meta])*
        $name:ident of $type:ident, $len:literal bytes {
            $($(#[$doc:meta])* $field:ident: $kind:ty $(, reserved $reserved:literal)?;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl $crate::wire::Header for $name {
            const TYPE: $crate::wire::PacketType = $crate::wire::PacketType::$type;
            const LEN: usize = {
                let fields = 2 $(+ <$kind as $crate::wire::field::Field>::LEN $(+ $reserved)?)*;
                assert!(fields == $len, "the header's length is that of its fields");
                $len
            };

            #[inline]
            fn read(reader: &mut hopcast_core::Reader<'_>) -> Result<Self, hopcast_core::Malformed> {
                $(
                    let $field = $crate::wire::field::Field::read(reader, stringify!($field))?;
                    $(reader.take($reserved, "reserved")?;)?
                )*
                Ok(Self { $($field),* })
            }

            #[inline]
            fn write(&self, writer: &mut hopcast_core::Writer<'_>) {
                $(
                    $crate::wire::field::Field::write(&self.$field, writer);
                    $(writer.put(&[0; $reserved]);)?
                )*
            }
        }
    };
}

pub(super) use header;
