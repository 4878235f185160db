//! Recognises the classes of a library without RTTI by the shape of their vtables.
//!
//! ROCr is built with `-fno-rtti` and hidden visibility, so a stripped build names no class. The layout that the Itanium C++ ABI
//! (section 2.5) prescribes remains: a vtable is `offset_to_top`, a type-info word, then one pointer per virtual function, and the
//! vtable of a secondary base follows that of the primary one. In a shared library each pointer is a relocation, so runs of
//! relocations to function starts are the vtables.

use object::elf;

use super::elf::{Image, WORD};
use super::functions::Functions;

/// Slot of `StoreRelaxed` in the vtable of a `rocr::core::Signal`, after `LoadRelaxed` and `LoadAcquire` (ROCR-Runtime
/// `core/inc/signal.h`, the same from 5.2 to 7.2).
pub const SIGNAL_STORE_RELAXED: usize = 2;
/// Slot of `StoreRelease`.
pub const SIGNAL_STORE_RELEASE: usize = 3;
/// `core::Signal` declares at least 40 virtual functions. The margin costs nothing, because the functions are examined next.
const MIN_SIGNAL_SLOTS: usize = 32;
/// Limit in bytes. The signal sub-object starts within the first bytes of a queue (56, 64 and 72 in the builds measured).
const MAX_SIGNAL_OFFSET: i64 = 200;

/// A hundred times as many as in any build: a malicious file with overlapping sections must not keep tracer busy for hours.
const MAX_RELOCATIONS: usize = 2_000_000;
/// Builds have at most 115 vtables in all, and at most 40 functions in a queue's part.
const MAX_CLASSES: usize = 256;
const MAX_QUEUE_SLOTS: usize = 256;

/// One vtable: the address of its first function pointer, its `offset_to_top`, and its functions (`None`: pure virtual).
struct Vtable {
    vaddr: u64,
    offset_to_top: i64,
    slots: Vec<Option<u64>>,
}

/// The vtables of a class that is a queue and has a signal as its second base.
pub(super) struct QueueClass {
    /// Address of the signal part's first function pointer.
    pub(super) vaddr: u64,
    /// Offset of the object from its signal sub-object: negative.
    pub(super) offset_to_top: i32,
    /// Virtual functions of the object itself, in order.
    pub(super) slots: Vec<Option<u64>>,
    /// `StoreRelaxed` as called through the signal.
    pub(super) signal_store_relaxed: u64,
    /// `StoreRelease` as called through the signal.
    pub(super) signal_store_release: u64,
}

/// Returns all classes of the library whose vtables pair a queue with a signal: `AqlQueue`, interceptors and NPU queues.
pub(super) fn queue_classes(image: &Image<'_>, functions: &Functions) -> Vec<QueueClass> {
    let vtables = vtables(image, &function_pointers(image, functions));
    let pairs = vtables.windows(2);
    pairs
        .filter_map(|pair| {
            if let [queue, signal] = pair {
                pair_up(queue, signal)
            } else {
                None
            }
        })
        .take(MAX_CLASSES)
        .collect()
}

fn pair_up(queue: &Vtable, signal: &Vtable) -> Option<QueueClass> {
    let queue_end = queue.vaddr.checked_add(queue.slots.len() as u64 * WORD)?;
    let adjacent = queue_end.checked_add(2 * WORD) == Some(signal.vaddr);
    let offsets = queue.offset_to_top == 0 && (-MAX_SIGNAL_OFFSET..0).contains(&signal.offset_to_top);
    if !adjacent || !offsets || signal.slots.len() < MIN_SIGNAL_SLOTS || queue.slots.len() > MAX_QUEUE_SLOTS {
        return None;
    }
    Some(QueueClass {
        vaddr: signal.vaddr,
        offset_to_top: i32::try_from(signal.offset_to_top).ok()?,
        slots: queue.slots.clone(),
        signal_store_relaxed: signal.slots.get(SIGNAL_STORE_RELAXED).copied().flatten()?,
        signal_store_release: signal.slots.get(SIGNAL_STORE_RELEASE).copied().flatten()?,
    })
}

/// A word that the dynamic linker fills with the address of a function.
struct FunctionPointer {
    vaddr: u64,
    function: Option<u64>,
}

/// Returns the function pointers of `.data.rel.ro`, in address order.
fn function_pointers(image: &Image<'_>, functions: &Functions) -> Vec<FunctionPointer> {
    let Some(section) = image.section(b".data.rel.ro") else {
        return Vec::new();
    };
    let end = section.vaddr.saturating_add(section.data.len() as u64);
    let mut pointers: Vec<_> = rela_targets(image)
        .chain(relr_targets(image))
        .take(MAX_RELOCATIONS)
        .filter(|pointer| (section.vaddr..end).contains(&pointer.vaddr))
        .filter(|pointer| pointer.function.is_none_or(|function| functions.is_start(function)))
        .collect();
    pointers.sort_unstable_by_key(|pointer| pointer.vaddr);
    pointers.dedup_by_key(|pointer| pointer.vaddr);
    pointers
}

/// Returns the words that `SHT_RELA` sections relocate by addend (the usual case) or by symbol (exported and pure virtual
/// functions).
fn rela_targets(image: &Image<'_>) -> impl Iterator<Item = FunctionPointer> {
    image
        .sections_of_type(elf::SHT_RELA)
        .flat_map(words::<3>)
        .take(MAX_RELOCATIONS)
        .filter_map(|[vaddr, info, addend]| {
            let function = match info as u32 {
                elf::R_X86_64_RELATIVE => Some(addend),
                elf::R_X86_64_64 => match image.dynamic_symbol((info >> 32) as usize)? {
                    (value, None) => Some(value.wrapping_add(addend)),
                    (_, Some(b"__cxa_pure_virtual" | b"__cxa_deleted_virtual")) => None,
                    (_, Some(_)) => return None,
                },
                _ => return None,
            };
            Some(FunctionPointer { vaddr, function })
        })
}

/// Returns the words that `SHT_RELR` sections relocate (`-z pack-relative-relocs`). Such a section has an address, then bitmaps of
/// the words that follow it. The addend is the word itself.
fn relr_targets(image: &Image<'_>) -> impl Iterator<Item = FunctionPointer> {
    let sections = image.sections_of_type(elf::SHT_RELR);
    let entries = sections.flat_map(words::<1>).take(MAX_RELOCATIONS);
    let places = entries.scan(0u64, |next, [entry]| {
        let (base, bits) = if entry & 1 == 0 {
            (entry, 1)
        } else {
            (*next, entry >> 1)
        };
        let covered = if entry & 1 == 0 { 1 } else { u64::from(u64::BITS - 1) };
        *next = base.wrapping_add(covered * WORD);
        let set = (0..u64::from(u64::BITS - 1)).filter(move |bit| bits >> bit & 1 == 1);
        Some(set.map(move |bit| base.wrapping_add(bit * WORD)))
    });
    places.flatten().take(MAX_RELOCATIONS).filter_map(|vaddr| {
        Some(FunctionPointer {
            vaddr,
            function: Some(image.word(vaddr)?),
        })
    })
}

/// Returns the data as records of `N` words.
fn words<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u64; N]> {
    let (words, _) = data.as_chunks::<{ WORD as usize }>();
    let (records, _) = words.as_chunks::<N>();
    records.iter().map(|record| record.map(u64::from_le_bytes))
}

/// Splits the pointers into runs of adjacent ones, and reads the header before each run.
fn vtables(image: &Image<'_>, pointers: &[FunctionPointer]) -> Vec<Vtable> {
    let runs = pointers.chunk_by(|a, b| a.vaddr.checked_add(WORD) == Some(b.vaddr));
    let headed = runs.filter_map(|run| {
        let vaddr = run.first()?.vaddr;
        let offset_to_top = image.word(vaddr.checked_sub(2 * WORD)?)?.cast_signed();
        Some(Vtable {
            vaddr,
            offset_to_top,
            slots: run.iter().map(|pointer| pointer.function).collect(),
        })
    });
    headed.collect()
}
