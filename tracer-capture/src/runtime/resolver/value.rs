//! Symbolic values: the source of a register's content, in terms of a function's arguments.

use super::site::Argument;

/// The known content of a register.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Value {
    #[default]
    Unknown,
    /// An argument other than the first, as passed.
    Passed(Argument),
    /// The low 32 bits of an argument, or some of them.
    Low(Argument),
    /// The first argument (`this`) plus an offset.
    Object(i32),
    /// The word at the first offset of the object, plus the second: a place in the memory that the field points to.
    Field(i32, i32),
    /// The word at the second offset of the memory that the field at the first offset points to.
    FieldOf(i32, i32),
    /// An address of static data, or a value read through one.
    Static,
}

impl Value {
    /// Returns the part of the value that remains in a 32-bit register.
    pub(super) fn low_half(self) -> Self {
        match self {
            Self::Passed(argument) | Self::Low(argument) => Self::Low(argument),
            _ => Self::Unknown,
        }
    }
}

/// An address: a register's value and a displacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) base: Value,
    pub(super) displacement: i32,
}

impl Place {
    /// Returns the offset in the object, if the place is a part of it.
    pub(super) fn in_object(self) -> Option<i32> {
        match self.base {
            Value::Object(offset) => offset.checked_add(self.displacement),
            _ => None,
        }
    }

    /// Returns the field that points to the place, and the place's offset from the pointer.
    pub(super) fn behind_field(self) -> Option<(i32, i32)> {
        match self.base {
            Value::Field(field, offset) => Some((field, offset.checked_add(self.displacement)?)),
            _ => None,
        }
    }

    /// Returns the address of the place as a value.
    pub(super) fn address(self) -> Value {
        match self.base {
            Value::Static => Value::Static,
            _ => self.in_object().map_or(Value::Unknown, Value::Object),
        }
    }

    /// Returns the word at the place as a value.
    pub(super) fn content(self) -> Value {
        match (self.base, self.in_object(), self.behind_field()) {
            (Value::Static, ..) => Value::Static,
            (_, Some(offset), _) => Value::Field(offset, 0),
            (.., Some((field, offset))) => Value::FieldOf(field, offset),
            _ => Value::Unknown,
        }
    }
}
