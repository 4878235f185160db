//! The lowest and the highest of some values.

use schemars::JsonSchema;
use serde::Serialize;

/// The lowest and the highest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Range {
    /// The lowest.
    pub min: u64,
    /// The highest.
    pub max: u64,
}

/// The smallest and the largest size in three dimensions, by the product of the dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Extent {
    /// The smallest.
    pub min: [u32; 3],
    /// The largest.
    pub max: [u32; 3],
}

impl Range {
    /// Widens a range by a value.
    pub(super) fn add(range: &mut Option<Self>, value: u64) {
        let of = range.get_or_insert(Self { min: value, max: value });
        of.min = of.min.min(value);
        of.max = of.max.max(value);
    }

    /// Widens a range by a value, if it is known.
    pub(super) fn add_known(range: &mut Option<Self>, value: Option<u32>) {
        if let Some(value) = value {
            Self::add(range, value.into());
        }
    }
}

impl Extent {
    /// Widens an extent by a size.
    pub(super) fn add(extent: &mut Option<Self>, size: [u32; 3]) {
        let of = extent.get_or_insert(Self { min: size, max: size });
        if product(size) < product(of.min) {
            of.min = size;
        }
        if product(size) > product(of.max) {
            of.max = size;
        }
    }
}

fn product(size: [u32; 3]) -> u128 {
    size.into_iter().map(u128::from).product()
}
