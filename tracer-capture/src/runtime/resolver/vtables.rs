//! Recognises the classes of a library without RTTI by the shape of their vtables.
//!
//! ROCr is built with `-fno-rtti` and hidden visibility, so a stripped build names no class. The layout that the Itanium C++ ABI
//! (section 2.5) prescribes remains: a vtable is `offset_to_top`, a type-info word, then one pointer per virtual function, and the
//! vtable of a secondary base follows that of the primary one. In a shared library each pointer is a relocation, so runs of
//! relocations to function starts are the vtables.

use object::elf;

use super::elf::{Image, MAX_RELOCATIONS, WORD, words};
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

/// Builds have at most 115 vtables in all, and at most 40 functions in a queue's part.
const MAX_CLASSES: usize = 256;
const MAX_QUEUE_SLOTS: usize = 256;

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
pub(super) fn queue_classes(functions: &Functions<'_>) -> Vec<QueueClass> {
    let pointers = function_pointers(functions);
    let vtables = pointers.chunk_by(|a, b| a.vaddr.checked_add(WORD) == Some(b.vaddr));
    let vtables: Vec<_> = vtables.collect();
    let classes = vtables
        .array_windows()
        .filter_map(|[queue, signal]| pair_up(functions.image, queue, signal));
    classes.take(MAX_CLASSES).collect()
}

/// Combines two vtables, given by their function pointers, if they are those of a queue and of its signal part.
fn pair_up(image: &Image<'_>, queue: &[FunctionPointer], signal: &[FunctionPointer]) -> Option<QueueClass> {
    let header = |vtable: u64| vtable.checked_sub(2 * WORD);
    let offset_to_top = |vtable: u64| Some(image.word(header(vtable)?)?.cast_signed());
    let (vaddr, queue_end) = (signal.first()?.vaddr, queue.last()?.vaddr.checked_add(WORD)?);
    let signal_offset = offset_to_top(vaddr)?;
    let offsets = offset_to_top(queue.first()?.vaddr)? == 0 && (-MAX_SIGNAL_OFFSET..0).contains(&signal_offset);
    let adjacent = header(vaddr) == Some(queue_end);
    if !adjacent || !offsets || signal.len() < MIN_SIGNAL_SLOTS || queue.len() > MAX_QUEUE_SLOTS {
        return None;
    }
    Some(QueueClass {
        vaddr,
        offset_to_top: i32::try_from(signal_offset).ok()?,
        slots: queue.iter().map(|pointer| pointer.function).collect(),
        signal_store_relaxed: signal.get(SIGNAL_STORE_RELAXED)?.function?,
        signal_store_release: signal.get(SIGNAL_STORE_RELEASE)?.function?,
    })
}

/// A word that the dynamic linker fills with the address of a function (`None`: pure virtual).
struct FunctionPointer {
    vaddr: u64,
    function: Option<u64>,
}

/// Returns the function pointers of `.data.rel.ro`, in address order.
fn function_pointers(functions: &Functions<'_>) -> Vec<FunctionPointer> {
    let image = functions.image;
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
    image.relocations().filter_map(|relocation| {
        let function = match relocation.kind {
            elf::R_X86_64_RELATIVE => Some(relocation.addend),
            elf::R_X86_64_64 => match image.dynsym().value_and_undefined_name(relocation.symbol)? {
                (value, None) => Some(value.wrapping_add(relocation.addend)),
                (_, Some(b"__cxa_pure_virtual" | b"__cxa_deleted_virtual")) => None,
                (_, Some(_)) => return None,
            },
            _ => return None,
        };
        let vaddr = relocation.vaddr;
        Some(FunctionPointer { vaddr, function })
    })
}

/// Returns the words that `SHT_RELR` sections relocate (`-z pack-relative-relocs`). Such a section has an address, then bitmaps of
/// the words that follow it. The addend is the word itself.
fn relr_targets(image: &Image<'_>) -> impl Iterator<Item = FunctionPointer> {
    let sections = image.sections_of_type(elf::SHT_RELR);
    let entries = sections.flat_map(words::<1>).take(MAX_RELOCATIONS);
    let places = entries.scan(0u64, |next, [entry]| {
        let in_bitmap = u64::from(u64::BITS - 1);
        let (base, bits, covered) = if entry & 1 == 0 {
            (entry, 1, 1)
        } else {
            (*next, entry >> 1, in_bitmap)
        };
        *next = base.wrapping_add(covered * WORD);
        let set = (0..in_bitmap).filter(move |bit| bits >> bit & 1 == 1);
        Some(set.map(move |bit| base.wrapping_add(bit * WORD)))
    });
    places.flatten().take(MAX_RELOCATIONS).filter_map(|vaddr| {
        let function = Some(image.word(vaddr)?);
        Some(FunctionPointer { vaddr, function })
    })
}
