//! Macros by which tables of names and of offsets declare types.

/// Declares a closed set of values, each with its name in data.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $set:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$meta])*
        pub enum $set {
            $($(#[$doc])* $value,)*
        }

        impl $set {
            /// Every value, in order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// Returns the name in data.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }
        }
    };
}

/// Declares a layout: byte offsets (u32) of fields, each with its value in a layout of which nothing is known.
macro_rules! layout {
    ($(#[$meta:meta])* pub struct $layout:ident { $($(#[$doc:meta])* $field:ident = $unknown:expr,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $layout {
            $($(#[$doc])* pub $field: u32,)*
        }

        impl $layout {
            /// No field is known.
            pub const NONE: Self = Self { $($field: $unknown,)* };
        }
    };
}
