//! Sets of flags in one byte.

/// A type for a byte of flags, with a constant for each. Bits without a name are kept as they are.
macro_rules! bits {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $flag:ident = $bit:expr;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub u8);

        impl $name {
            $($(#[$what])* pub const $flag: Self = Self($bit);)*

            /// Whether all flags of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// These flags and those of `other`.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// These flags without those of `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }
    };
}

pub(super) use bits;
