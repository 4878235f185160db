//! Which calls of API functions a recording captures.

use tracer_common::api::{Class, Classes, Layer};

/// The calls that are captured: those of the functions of some layers. Calls of some classes get a row each; the others are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Api {
    /// One for each layer, in the order of [`Layer::ALL`].
    layers: [bool; Layer::ALL.len()],
    rows: Classes,
}

impl Api {
    /// No calls.
    pub const NONE: Self = Self {
        layers: [false; Layer::ALL.len()],
        rows: Classes::NONE,
    };
    /// Calls of all layers.
    pub const ALL: Self = Self {
        layers: [true; Layer::ALL.len()],
        rows: Classes::USUAL,
    };
    /// Calls of all layers, counted only.
    pub const STATS: Self = Self {
        rows: Classes::NONE,
        ..Self::ALL
    };

    /// Chooses the calls of these layers. Those of the classes in `rows` get a row each.
    #[must_use]
    pub fn new(layers: &[Layer], rows: Classes) -> Self {
        let mut api = Self { rows, ..Self::NONE };
        for &layer in layers {
            api.layers[layer as usize] = true;
        }
        api
    }

    /// Returns whether functions of this layer are probed.
    #[must_use]
    pub fn wants(self, layer: Layer) -> bool {
        self.layers[layer as usize]
    }

    /// Returns whether no function is probed.
    #[must_use]
    pub fn is_none(self) -> bool {
        !self.layers.contains(&true)
    }

    /// Returns whether calls of this class are counted instead of recorded.
    #[must_use]
    pub fn counts(self, class: Class) -> bool {
        !self.rows.has(class)
    }

    /// Returns whether some calls get a row each. Then submissions name their calls.
    #[must_use]
    pub fn records(self) -> bool {
        !self.is_none() && !self.rows.is_empty()
    }

    /// Returns whether some calls are counted.
    #[must_use]
    pub fn counts_any(self) -> bool {
        !self.is_none() && self.rows != Classes::ALL
    }

    /// Returns the value by which the programs know the choice (`API` in tracer-ebpf/src/api.rs).
    #[must_use]
    pub fn word(self) -> u8 {
        match (self.is_none(), self.records()) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_and_what_is_recorded() {
        let hip = Api::new(&[Layer::Hip], Classes::USUAL);
        assert!(hip.wants(Layer::Hip) && !hip.wants(Layer::Hsa) && !hip.wants(Layer::OpenCl));
        assert!(hip.counts(Class::Query) && !hip.counts(Class::Submit));
        assert_eq!((hip.records(), hip.counts_any(), hip.word()), (true, true, 1));
        let rows = Api::new(&[Layer::OpenCl, Layer::Hsa], Classes::ALL);
        assert!(!rows.wants(Layer::Hip) && rows.wants(Layer::OpenCl));
        assert_eq!((rows.records(), rows.counts_any(), rows.word()), (true, false, 1));
        assert_eq!(
            (Api::STATS.records(), Api::STATS.counts_any(), Api::STATS.word()),
            (false, true, 2)
        );
        let none = Api::new(&[], Classes::ALL);
        assert_eq!((none.records(), none.counts_any(), none.word()), (false, false, 0));
    }
}
