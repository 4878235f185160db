//! Client memory that has another address on the GPU than in the client.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Host memory that runtimes before ROCr 6 registered with the driver. They give it an address of its own on the GPU.
#[derive(Default)]
pub struct Aliases(RwLock<BTreeMap<u64, (u64, u64)>>);

impl Aliases {
    /// Makes `bytes` of the client's memory at `own` visible at `va`.
    pub fn insert(&self, va: u64, bytes: u64, own: u64) {
        let mut aliases = self.0.write().unwrap_or_else(PoisonError::into_inner);
        aliases.insert(va, (va.saturating_add(bytes), own));
    }

    /// Removes the alias that begins at `va`.
    pub fn remove(&self, va: u64) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&va);
    }

    /// Returns the client's own address of the GPU address `va`.
    pub fn own(&self, va: u64) -> u64 {
        let aliases = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match aliases.range(..=va).next_back() {
            Some((&start, &(end, own))) if va < end => own.wrapping_add(va - start),
            _ => va,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_registered_has_another_address() {
        let aliases = Aliases::default();
        aliases.insert(0x7000_0000, 0x2000, 0x5000);
        let own = [0x6fff_ffff, 0x7000_0000, 0x7000_1fff, 0x7000_2000].map(|va| aliases.own(va));
        assert_eq!(own, [0x6fff_ffff, 0x5000, 0x6fff, 0x7000_2000]);
        aliases.remove(0x7000_0000);
        assert_eq!(aliases.own(0x7000_0000), 0x7000_0000);
    }
}
