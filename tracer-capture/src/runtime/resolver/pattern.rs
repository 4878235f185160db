//! The two doorbell patterns, as effects of a function on its arguments.

use tracer_common::queue;

use super::flow::{Effects, Store};
use super::site::Argument;
use super::value::Value;

/// Offset of `amd_signal_t::hardware_doorbell_ptr`, after the 8-byte `kind` (`hsa/amd_hsa_signal.h`; part of the HSA ABI).
const HARDWARE_DOORBELL_PTR: i32 = 8;

/// How a function rings an AQL doorbell: `*this->signal_.hardware_doorbell_ptr = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AqlDoorbell {
    /// Offset of the object's field that contains the address of its `amd_signal_t`.
    pub(super) signal_offset: i32,
    /// Addresses of the stores to the doorbell.
    pub(super) stores: Vec<u64>,
    /// Whether the function can instead call a target other than its object's virtual functions: as far as is known, a function in
    /// a table of driver functions.
    pub(super) thunk_bypass: bool,
}

/// The relation of a function to doorbells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AqlShape {
    /// The function does not write to a doorbell.
    NoStore,
    /// The function rings a doorbell in the known way.
    Rings(AqlDoorbell),
    /// The function writes to a doorbell, but not in the known way.
    Unclear,
}

/// Recognises the AQL doorbell: a 64-bit store of the second argument, after a store fence.
///
/// Runtimes up to 6.4 also contain the 32-bit store of the legacy doorbell (GFX8 and older), which stores a derived value.
pub(super) fn aql_doorbell(effects: &Effects) -> AqlShape {
    let stores: Vec<_> = effects
        .stores
        .iter()
        .filter_map(|store| Some((doorbell_signal(store)?, store)))
        .collect();
    let Some(&(signal_offset, _)) = stores.first() else {
        return AqlShape::NoStore;
    };
    let one_signal = stores.iter().all(|(offset, _)| *offset == signal_offset);
    let mut wide = stores.iter().filter(|(_, store)| store.width == 8).peekable();
    let understood = wide.peek().is_some() && wide.all(|(_, store)| store.value == Value::Passed(Argument::Rsi));
    if !one_signal || !understood || !effects.store_fence {
        return AqlShape::Unclear;
    }
    // The target of a virtual call comes from the memory that a field of the object points to, usually its vtable.
    let is_virtual = |target: &Value| matches!(target, Value::FieldOf(..));
    AqlShape::Rings(AqlDoorbell {
        signal_offset,
        stores: stores.iter().map(|(_, store)| store.vaddr).collect(),
        thunk_bypass: !effects.indirect.iter().all(is_virtual),
    })
}

/// Returns the offset of the signal whose doorbell the store writes.
fn doorbell_signal(store: &Store) -> Option<i32> {
    match (store.place.base, store.place.displacement) {
        (Value::FieldOf(signal, HARDWARE_DOORBELL_PTR), 0) => Some(signal),
        _ => None,
    }
}

/// Recognises `AqlQueue::AddWriteIndex*` by the atomic additions, or `AqlQueue::StoreWriteIndex*` by the stores of a function. There
/// is only one: of the second argument to the write index of the `amd_queue_t` that a field points to. Returns the field's offset.
pub(super) fn write_index_field(stores: &[Store]) -> Option<i16> {
    let [store] = stores else {
        return None;
    };
    let (field, offset) = store.place.behind_field()?;
    let passed = store.width == 8 && store.value == Value::Passed(Argument::Rsi);
    let to_index = usize::try_from(offset) == Ok(queue::WRITE_DISPATCH_ID);
    i16::try_from(field).ok().filter(|_| passed && to_index)
}

/// Recognises how `BlitSdma::UpdateWriteAndDoorbellRegister(curr_index, new_index)` publishes SDMA packets. The function stores the
/// third argument through the pointer at X + 8 (write pointer), then through the pointer at X (doorbell), then, after a store fence,
/// into a field on which it has waited before. Returns X and the store to the doorbell.
pub(super) fn sdma_doorbell(effects: &Effects) -> Option<(i32, &Store)> {
    let published: Vec<_> = effects.stores.iter().filter(|store| carries_new_index(store)).collect();
    let mut pairs = published.array_windows();
    let (doorbell_ptr, ring) = pairs.find_map(|[write, ring]| Some((sdma_pair(write, ring)?, *ring)))?;
    let committed = published.iter().any(|store| {
        let field = store.place.in_object();
        let waited_on = field.is_some_and(|field| effects.fields_read.contains(&field));
        waited_on && store.vaddr > ring.vaddr && store.width == ring.width
    });
    (committed && effects.store_fence).then_some((doorbell_ptr, ring))
}

/// Returns the field with the doorbell's address, if the first store is to the write pointer and the second to the doorbell.
fn sdma_pair(write: &Store, ring: &Store) -> Option<i32> {
    let (Value::Field(write_ptr, 0), Value::Field(doorbell_ptr, 0)) = (write.place.base, ring.place.base) else {
        return None;
    };
    let adjacent = doorbell_ptr.checked_add(8) == Some(write_ptr);
    let direct = write.place.displacement == 0 && ring.place.displacement == 0;
    let same = write.value == ring.value && write.width == ring.width;
    (adjacent && direct && same).then_some(doorbell_ptr)
}

fn carries_new_index(store: &Store) -> bool {
    matches!(
        (store.width, store.value),
        (8, Value::Passed(Argument::Rdx)) | (4, Value::Low(Argument::Rdx))
    )
}
