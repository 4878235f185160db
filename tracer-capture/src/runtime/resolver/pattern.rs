//! The two doorbell patterns, as effects of a function on its arguments.

use tracer_common::queue;

use super::flow::{Effects, Store};
use super::site::Argument;
use super::value::{Place, Value};

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
    AqlShape::Rings(AqlDoorbell {
        signal_offset,
        stores: stores.iter().map(|(_, store)| store.vaddr).collect(),
        thunk_bypass: effects.indirect.iter().any(|target| !is_virtual(target)),
    })
}

/// Returns whether the target of a jump or call comes from the memory that a field of the object points to, usually its vtable.
fn is_virtual(target: &Value) -> bool {
    matches!(target, Value::FieldOf(..))
}

/// Returns the offset of the signal whose doorbell the store writes.
fn doorbell_signal(store: &Store) -> Option<i32> {
    match store.place {
        Place {
            base: Value::FieldOf(signal, HARDWARE_DOORBELL_PTR),
            displacement: 0,
        } => Some(signal),
        _ => None,
    }
}

/// Recognises `AqlQueue::AddWriteIndex*`: one atomic addition of the second argument to the write index of the `amd_queue_t` that a
/// field points to. Returns the field's offset.
pub(super) fn add_write_index(effects: &Effects) -> Option<i32> {
    let [add] = effects.locked_adds.as_slice() else {
        return None;
    };
    let (field, offset) = add.place.behind_field()?;
    let passed = add.width == 8 && add.value == Value::Passed(Argument::Rsi);
    (passed && usize::try_from(offset) == Ok(queue::WRITE_DISPATCH_ID)).then_some(field)
}

/// Recognises `AqlQueue::StoreWriteIndex*`: the function stores the second argument to the write index of the `amd_queue_t` that a
/// field points to, and stores nothing else. Returns the field's offset.
pub(super) fn store_write_index(effects: &Effects) -> Option<i32> {
    let [store] = effects.stores.as_slice() else {
        return None;
    };
    let (field, offset) = store.place.behind_field()?;
    let passed = store.width == 8 && store.value == Value::Passed(Argument::Rsi);
    (passed && usize::try_from(offset) == Ok(queue::WRITE_DISPATCH_ID)).then_some(field)
}

/// How `BlitSdma::UpdateWriteAndDoorbellRegister(curr_index, new_index)` publishes SDMA packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SdmaDoorbell {
    /// Offset of the object's field that contains the doorbell's address. The address of the write pointer follows.
    pub(super) doorbell_ptr_offset: i32,
    /// Number of bytes stored to each.
    pub(super) width: usize,
    /// Address of the store to the doorbell.
    pub(super) store: u64,
}

/// Recognises the SDMA doorbell. The function stores the third argument through the pointer at X + 8 (write pointer), then through
/// the pointer at X (doorbell), then, after a store fence, into a field on which it has waited before.
pub(super) fn sdma_doorbell(effects: &Effects) -> Option<SdmaDoorbell> {
    let published: Vec<_> = effects.stores.iter().filter(|store| carries_new_index(store)).collect();
    let doorbell = published.windows(2).find_map(|pair| match pair {
        [write, ring] => sdma_pair(write, ring),
        _ => None,
    })?;
    let committed = published.iter().any(|store| {
        let field = store.place.in_object();
        let waited_on = field.is_some_and(|field| effects.fields_read.contains(&field));
        waited_on && store.vaddr > doorbell.store && store.width == doorbell.width
    });
    (committed && effects.store_fence).then_some(doorbell)
}

fn sdma_pair(write: &Store, ring: &Store) -> Option<SdmaDoorbell> {
    let (Value::Field(write_ptr), Value::Field(doorbell_ptr)) = (write.place.base, ring.place.base) else {
        return None;
    };
    let adjacent = doorbell_ptr.checked_add(8) == Some(write_ptr);
    let direct = write.place.displacement == 0 && ring.place.displacement == 0;
    let same = write.value == ring.value && write.width == ring.width;
    let found = SdmaDoorbell {
        doorbell_ptr_offset: doorbell_ptr,
        width: ring.width,
        store: ring.vaddr,
    };
    (adjacent && direct && same).then_some(found)
}

fn carries_new_index(store: &Store) -> bool {
    match store.width {
        8 => store.value == Value::Passed(Argument::Rdx),
        4 => store.value == Value::Low(Argument::Rdx),
        _ => false,
    }
}
