//! Determines whether a process's runtime stores to doorbells or hands them to the driver's library: see `resolver::ThunkFlags`.

use crate::{
    confined::Remote,
    runtime::resolver::{Resolution, ThunkFlags},
    target::proc_maps::Mapping,
};

/// Returns whether the runtime at `mapping`, in a process with this memory, hands its doorbells over. Returns `None` if this is
/// unknown: the runtime is not initialised, or the deciding bytes are not understood or can't be read.
pub fn hands_over(memory: &Remote<'_>, mapping: &Mapping, resolution: &Resolution) -> Option<bool> {
    let flags = resolution.thunk_flags()?;
    read(flags, mapping.bias(resolution)?, |address| memory.word(address).ok())
}

fn read(flags: &ThunkFlags, bias: u64, word: impl Fn(u64) -> Option<u64>) -> Option<bool> {
    let pointer = |address: u64| word(address).filter(|&pointer| pointer != 0);
    let mut at = pointer(bias.wrapping_add(flags.pointer))?;
    for &hop in &flags.hops {
        at = pointer(at.wrapping_add_signed(hop.into()))?;
    }
    let mut set = false;
    for &flag in &flags.flags {
        set |= word(at.wrapping_add_signed(flag.into()))? & 0xff != 0;
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn any_flag_that_is_set_hands_over_and_no_pointer_may_be_missing() {
        let flags = ThunkFlags {
            pointer: 0x100,
            hops: vec![0x5a8],
            flags: vec![0x368, 0x369],
        };
        let answer = |runtime: u64, loader: u64, first: u64, second: u64| {
            let memory: HashMap<u64, u64> = [
                (0x7000_0100, runtime),
                (0x9000 + 0x5a8, loader),
                (0xa000 + 0x368, first | 0xff00),
                (0xa000 + 0x369, second | 0xff00),
            ]
            .into();
            read(&flags, 0x7000_0000, |address| memory.get(&address).copied())
        };
        assert_eq!(answer(0x9000, 0xa000, 0, 0), Some(false));
        assert_eq!(answer(0x9000, 0xa000, 1, 0), Some(true));
        assert_eq!(answer(0x9000, 0xa000, 0, 1), Some(true));
        // The runtime is not initialised; the memory is not readable.
        assert_eq!((answer(0, 0xa000, 0, 0), answer(0x9000, 0, 0, 0)), (None, None));
        assert_eq!(
            (answer(0x8000, 0xa000, 0, 0), answer(0x9000, 0xb000, 0, 0)),
            (None, None)
        );
    }
}
