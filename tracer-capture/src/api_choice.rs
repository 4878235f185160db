//! Which calls of HIP and HSA functions a recording captures.

use tracer_common::api::Layer;

/// The calls that are captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Api {
    /// No calls.
    #[default]
    None,
    /// Calls of HIP functions.
    Hip,
    /// Calls of HSA functions.
    Hsa,
    /// Calls of both.
    All,
    /// Calls of both, counted only.
    Stats,
}

impl Api {
    /// Returns whether functions of this layer are probed.
    #[must_use]
    pub fn wants(self, layer: Layer) -> bool {
        matches!(
            (self, layer),
            (Self::All | Self::Stats, _) | (Self::Hip, Layer::Hip) | (Self::Hsa, Layer::Hsa)
        )
    }

    /// Returns the value by which the programs know the choice (`API` in tracer-ebpf/src/api.rs).
    #[must_use]
    pub fn word(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Hip | Self::Hsa | Self::All => 1,
            Self::Stats => 2,
        }
    }
}
