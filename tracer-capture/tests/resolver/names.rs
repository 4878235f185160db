//! Function names as in a build that is not stripped, in the library or in a debug file.

use tracer_capture::runtime::resolver::{DoorbellRole, QueueRole, Resolution};

use super::patch::Patched;

/// Returns the mangled names of the functions that the resolver found, as in a build that is not stripped.
pub fn symbols(resolution: &Resolution) -> Vec<(String, u64)> {
    let thunk = |adjustment: i32, method: &str| format!("_ZThn{}_N4rocr3AMD8AqlQueue12{method}El", -adjustment);
    let mut symbols: Vec<_> = resolution
        .functions
        .iter()
        .map(|function| {
            let name = match function.role {
                DoorbellRole::Main => "_ZN4rocr3AMD8AqlQueue12StoreRelaxedEl".to_owned(),
                DoorbellRole::ReleaseMain => "_ZN4rocr3AMD8AqlQueue12StoreReleaseEl".to_owned(),
                DoorbellRole::SignalThunkRelaxed => thunk(function.adjustment, "StoreRelaxed"),
                DoorbellRole::SignalThunkRelease => thunk(function.adjustment, "StoreRelease"),
            };
            (name, function.vaddr)
        })
        .collect();
    let own = resolution.own_reserve.as_ref().expect("found by its vtable");
    symbols.push((
        "_ZN4rocr3AMD8AqlQueue19AddWriteIndexAcqRelEm".to_owned(),
        own.probe.function,
    ));
    symbols.extend(resolution.queue_functions.iter().map(|function| {
        let name = match function.role {
            QueueRole::StoreWriteIndexRelaxed => "_ZN4rocr3AMD8AqlQueue22StoreWriteIndexRelaxedEm",
            QueueRole::StoreWriteIndexRelease => "_ZN4rocr3AMD8AqlQueue22StoreWriteIndexReleaseEm",
            QueueRole::ExecutePm4 => "_ZN4rocr3AMD8AqlQueue10ExecutePM4EPjm",
        };
        (name.to_owned(), function.probe.function)
    }));
    symbols.extend(resolution.sdma.iter().enumerate().map(|(n, site)| {
        let name = format!("_ZN4rocr3AMD8BlitSdmaILb{n}EE30UpdateWriteAndDoorbellRegisterEmm");
        (name, site.probe.function)
    }));
    symbols
}

/// Converts the symbols to the form that `Patched::add_symtab` takes.
pub fn borrowed(symbols: &[(String, u64)]) -> Vec<(&str, u64)> {
    symbols.iter().map(|(name, vaddr)| (name.as_str(), *vaddr)).collect()
}

/// Returns a debug file with the relevant output of `objcopy --only-keep-debug`: headers, notes, symbols. This one also contains
/// the rest of the library.
pub fn debug_file(library: &[u8], symbols: &[(String, u64)]) -> Vec<u8> {
    Patched(library.to_vec()).add_symtab(&borrowed(symbols)).0
}

/// Computes the checksum bit by bit, independent of the code under test.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = !0u32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}
