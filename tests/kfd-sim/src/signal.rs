//! HSA signals in client memory (`amd_signal_t`): reading dependencies and completing packets.

use crate::events::Events;
use crate::vm::{AddressSpace, Fault, WriteBatch};

/// Offsets in `amd_signal_t`.
const VALUE: u64 = 8;
const EVENT_MAILBOX: usize = 0x10;
const EVENT_ID: usize = 0x18;
const START_TS: u64 = 0x20;

/// The number of bytes of `amd_signal_t` that are read to complete it.
const HEAD: usize = 0x20;

/// Returns the value of a signal.
pub fn value(space: &AddressSpace, signal: u64) -> Result<i64, Fault> {
    Ok(space.read_u64(signal.checked_add(VALUE).ok_or(Fault(signal))?)? as i64)
}

/// Completes a packet's signal: timestamps if there are any, value - 1, mailbox, interrupt. Writes `before` first, in the same
/// call.
pub fn complete(
    space: &AddressSpace,
    events: &Events,
    signal: u64,
    ticks: Option<(u64, u64)>,
    before: &mut WriteBatch,
) -> Result<(), Fault> {
    let stamps = signal.checked_add(START_TS).ok_or(Fault(signal))?;
    let value_at = signal + VALUE;
    let mut head = [0; HEAD];
    let is_shared = value_at.is_multiple_of(8) && space.direct(signal, 0x40).is_some();
    let guard = (!is_shared).then(|| space.lock(value_at));
    if let Err(fault) = space.read(signal, &mut head) {
        space.submit(before)?;
        return Err(fault);
    }
    if let Some((start, end)) = ticks {
        let mut both = [0; 16];
        both[..8].copy_from_slice(&start.to_le_bytes());
        both[8..].copy_from_slice(&end.to_le_bytes());
        before.push(stamps, &both);
    }
    if is_shared {
        space.submit(before)?;
        space.add_u64(value_at, u64::MAX)?;
    } else {
        before.push(value_at, &word(&head, VALUE as usize).wrapping_sub(1).to_le_bytes());
    }
    notify(space, events, &head, before)?;
    drop(guard);
    Ok(())
}

/// Stores a value in a signal and notifies its waiter, as the packet processor does with the queue's inactive signal.
pub fn store(space: &AddressSpace, events: &Events, signal: u64, value: i64) -> Result<(), Fault> {
    let mut head = [0; HEAD];
    let mut batch = WriteBatch::default();
    space.read(signal, &mut head)?;
    batch.push(signal + VALUE, &value.to_le_bytes());
    notify(space, events, &head, &mut batch)
}

/// Performs the pending writes, the mailbox last, and raises the interrupt.
fn notify(space: &AddressSpace, events: &Events, head: &[u8; HEAD], batch: &mut WriteBatch) -> Result<(), Fault> {
    let mailbox = word(head, EVENT_MAILBOX);
    let event_id = word(head, EVENT_ID) as u32;
    if mailbox != 0 {
        batch.push(mailbox, &u64::from(event_id).to_le_bytes());
    }
    space.submit(batch)?;
    if mailbox != 0 {
        events.interrupt(space, event_id);
    }
    Ok(())
}

fn word(head: &[u8; HEAD], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| head[at + i]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::SharedFile;

    /// An `amd_signal_t` of this process, which is its own client here.
    #[repr(C, align(64))]
    struct Signal([u64; 8]);

    fn own_space() -> AddressSpace {
        AddressSpace::new(
            std::process::id() as i32,
            Arc::new(SharedFile::new("test", 1 << 20).unwrap()),
        )
    }

    #[test]
    fn completion_decrements_and_stamps() {
        let (space, events) = (own_space(), Events::default());
        let mut mailbox = 0u64;
        let mut other = 0u64;
        let signal = Signal([1, 0, (&raw mut mailbox) as u64, 5, 0, 0, 0, 0]);
        let address = (&raw const signal) as u64;
        let mut before = WriteBatch::default();
        before.push((&raw mut other) as u64, &3u64.to_le_bytes());
        complete(&space, &events, address, Some((100, 200)), &mut before).unwrap();
        assert_eq!(
            value(&space, address),
            Ok(-1),
            "0 - 1: a signal's value is signed and wraps"
        );
        let mut seen = [0; 64];
        space.read(address, &mut seen).unwrap();
        assert_eq!(
            seen[0x20..0x30],
            [[100, 0, 0, 0, 0, 0, 0, 0], [200, 0, 0, 0, 0, 0, 0, 0]].concat()
        );
        assert_eq!(space.read_u64((&raw const mailbox) as u64), Ok(5));
        assert_eq!(space.read_u64((&raw const other) as u64), Ok(3));
    }

    #[test]
    fn a_wild_signal_faults_but_what_came_before_is_written() {
        let (space, events) = (own_space(), Events::default());
        let mut other = 0u64;
        let mut before = WriteBatch::default();
        before.push((&raw mut other) as u64, &3u64.to_le_bytes());
        let result = complete(&space, &events, 0x10, Some((1, 2)), &mut before);
        assert_eq!(result, Err(Fault(0x10)));
        assert_eq!(space.read_u64((&raw const other) as u64), Ok(3));
        assert!(complete(&space, &events, u64::MAX - 3, None, &mut before).is_err());
    }
}
