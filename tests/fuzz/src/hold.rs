//! Properties that every result of the resolver must have, in any file. A wrong probe address would otherwise go unnoticed.

use tracer_capture::runtime::resolver::{
    InstructionKind, Outcome, ProbePoint, QueueRole, Resolution, Sought, ThunkFlags,
};

/// The longest function length. Longer functions ring nothing.
const LONGEST: usize = 4096;

/// Checks that no probe is outside the file's code or its function, that none is there twice, and that the result reports nothing
/// that the code does not contain.
pub fn hold(elf: &[u8], resolution: &Resolution) {
    let doorbells = resolution.doorbells.iter().map(|site| site.probe);
    let sdma = resolution.sdma.iter().map(|site| site.probe);
    let own = resolution.own_reserve.iter().map(|site| site.probe);
    let lists = resolution.code_objects.iter().map(|site| site.probe);
    let probes: Vec<ProbePoint> = doorbells.chain(sdma).chain(own).chain(lists).collect();
    for (number, probe) in probes.iter().enumerate() {
        stands(elf, probe);
        let others = probes.get(..number).unwrap_or_default();
        assert!(
            others.iter().all(|other| other.vaddr != probe.vaddr),
            "{probe:x?} is probed twice"
        );
    }
    for site in &resolution.doorbells {
        assert!(!site.doorbell_stores.is_empty(), "{site:x?} rings nothing");
        assert!(
            site.doorbell_stores.iter().all(|store| *store > site.probe.vaddr),
            "{site:x?}"
        );
        if let Some(flags) = &site.thunk_flags {
            assert!(site.thunk_bypass, "{site:x?} has flags for nothing");
            decide(elf, &site.probe, flags);
        }
    }
    if let Some(flags) = resolution.thunk_flags() {
        let mut able = resolution.doorbells.iter().filter(|site| site.thunk_bypass);
        assert!(resolution.may_hand_over(), "flags of nothing: {flags:x?}");
        assert!(
            able.all(|site| site.thunk_flags.as_ref() == Some(flags)),
            "{flags:x?} of some"
        );
    }
    queue_functions(elf, resolution);
    assert!(
        resolution.account.iter().all(|decision| !decision.reason.is_empty()),
        "{:?}",
        resolution.account
    );
}

/// Checks that a probe's address is mapped as code from the file, and that the code there is what the probe says.
fn stands(elf: &[u8], probe: &ProbePoint) {
    assert!(probe.vaddr >= probe.function, "{probe:x?} lies before its function");
    assert!(maps_as_code(elf, probe), "{probe:x?} lies in no code of the file");
    let code = elf.get(probe.file_offset as usize..).unwrap_or_default();
    let fits = match (probe.instruction, code) {
        (_, []) => false,
        (InstructionKind::Nop, [0x90, ..])
        | (InstructionKind::Push, [0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..])
        | (InstructionKind::Jcc, [0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..])
        | (InstructionKind::Jmp, [0xeb | 0xe9, ..])
        | (InstructionKind::Call, [0xe8, ..])
        | (InstructionKind::Other, _) => true,
        _ => false,
    };
    assert!(fits, "{probe:x?} is another instruction");
}

/// Returns whether an executable segment has the probe's address at its file offset. Does not use the resolver's parser.
fn maps_as_code(elf: &[u8], probe: &ProbePoint) -> bool {
    let number = |at: usize, len: usize| -> Option<u64> {
        let bytes = elf.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    };
    let maps = |header: usize| {
        let (kind, flags) = (number(header, 4)?, number(header + 4, 4)?);
        let (offset, start, len) = (number(header + 8, 8)?, number(header + 16, 8)?, number(header + 32, 8)?);
        let into = probe.vaddr.checked_sub(start).filter(|into| *into < len)?;
        (kind == 1 && flags & 1 == 1).then_some(offset.checked_add(into)? == probe.file_offset)
    };
    let table = number(32, 8).and_then(|at| usize::try_from(at).ok());
    let (table, count) = (table.unwrap_or(usize::MAX), number(56, 2).unwrap_or(0));
    (0..count as usize).any(|index| {
        let header = table.checked_add(56 * index).filter(|at| *at < elf.len());
        header.and_then(maps) == Some(true)
    })
}

/// Checks that every offset on the way to the flags is in the function's code, and that the first address is one that the code
/// refers to.
fn decide(elf: &[u8], probe: &ProbePoint, flags: &ThunkFlags) {
    let start = probe.file_offset - (probe.vaddr - probe.function);
    let code = elf.get(start as usize..).unwrap_or_default();
    let code = code.get(..LONGEST).unwrap_or(code);
    assert!(
        !flags.flags.is_empty() && flags.flags.is_sorted_by(|a, b| a < b),
        "{flags:x?}"
    );
    for offset in flags.flags.iter().chain(&flags.hops) {
        let whole = code.windows(4).any(|bytes| bytes == offset.to_le_bytes());
        let short = i8::try_from(*offset).is_ok_and(|offset| offset == 0 || code.contains(&offset.cast_unsigned()));
        assert!(whole || short, "{offset:#x} does not stand in {probe:x?}");
    }
    let refers = code.windows(4).zip(4u64..).any(|(bytes, end)| {
        let distance = bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        let end = probe.function.wrapping_add(end);
        end.wrapping_add_signed(distance.into()) == flags.pointer
    });
    assert!(refers, "{probe:x?} does not refer to {:#x}", flags.pointer);
}

/// Checks that each function occurs once, in order, found in the same way as the doorbell functions, with an equal decision about
/// each.
fn queue_functions(elf: &[u8], resolution: &Resolution) {
    let found = &resolution.queue_functions;
    let place = |role: QueueRole| QueueRole::ALL.iter().position(|known| *known == role);
    assert!(found.is_sorted_by(|a, b| place(a.role) < place(b.role)), "{found:x?}");
    let doorbell = resolution.doorbells.first();
    for function in found {
        stands(elf, &function.probe);
        let how = doorbell.map(|site| (site.step, site.confidence));
        assert_eq!(how, Some((function.step, function.confidence)), "{function:x?}");
        let stores = function.role != QueueRole::ExecutePm4;
        assert_eq!(function.queue_offset.is_some(), stores, "{function:x?}");
    }
    let about = |sought| {
        let account = resolution.account.iter();
        account.filter(move |decision| decision.sought == sought)
    };
    let expected = doorbell.map_or(0, |_| QueueRole::ALL.len());
    assert_eq!(
        about(Sought::QueueFunctions).count(),
        expected,
        "{:?}",
        resolution.account
    );
    let known: Vec<String> = about(Sought::QueueFunctions)
        .filter(|decision| decision.outcome == Outcome::Known)
        .map(|decision| decision.looked_at.clone())
        .collect();
    let named = found
        .iter()
        .map(|function| format!("{} at {:#x}", function.role, function.probe.function));
    assert_eq!(known, named.collect::<Vec<_>>());
    let own = about(Sought::OwnReserve).any(|decision| decision.outcome == Outcome::Used);
    assert_eq!(own, resolution.own_reserve.is_some(), "{:?}", resolution.account);
}
