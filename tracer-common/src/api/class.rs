//! Classes of functions: what a call of them is for.

named! {
    /// The purpose of a function. Every function of the catalogue has one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Class {
        /// Submits work: kernels, graphs, functions of the host.
        Submit = "submit",
        /// Copies or fills memory.
        Copy = "copy",
        /// Allocates, frees, maps or moves memory.
        Memory = "memory",
        /// Creates, changes or destroys a queue or a stream.
        Queue = "queue",
        /// Waits, or makes work wait: signals, events, barriers.
        Sync = "sync",
        /// Initializes, and loads code: modules, code objects, programs, graphs.
        Setup = "setup",
        /// Asks for a property or a state.
        Query = "query",
        /// A step of a submission: advances or reads an index of a queue, stores to a signal, sets an argument of a kernel.
        Step = "step",
    }
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(u16);

impl Classes {
    /// No class.
    pub const NONE: Self = Self(0);
    /// Every class.
    pub const ALL: Self = Self((1 << Class::ALL.len()) - 1);
    /// The classes whose calls get a row unless the user chooses others. Queries and steps are too frequent: HIP 6.4 makes 11 million
    /// queries in one run of rocblas-bench.
    pub const USUAL: Self = Self::ALL.without(Class::Query).without(Class::Step);

    /// Returns the set with this class.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u16)
    }

    /// Returns the set without this class.
    #[must_use]
    pub const fn without(self, class: Class) -> Self {
        Self(self.0 & !(1 << class as u16))
    }

    /// Returns the classes of both sets.
    #[must_use]
    pub const fn and(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// Returns whether the class is in the set.
    #[must_use]
    pub const fn has(self, class: Class) -> bool {
        self.0 >> class as u16 & 1 != 0
    }

    /// Returns whether no class is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        for class in Class::ALL {
            assert!(Classes::ALL.has(class) && !Classes::NONE.has(class));
            let usual = !matches!(class, Class::Query | Class::Step);
            assert_eq!(Classes::USUAL.has(class), usual, "{}", class.name());
            for other in Class::ALL {
                assert_eq!(Classes::NONE.with(class).has(other), class == other);
                assert_eq!(Classes::ALL.without(class).has(other), class != other);
            }
        }
        assert!(Classes::NONE.is_empty() && !Classes::USUAL.is_empty());
    }
}
