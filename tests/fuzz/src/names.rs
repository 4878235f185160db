//! Names of the miniature's functions, and a debug file that assigns them to addresses that an input chooses.

use tracer_capture::runtime::resolver::{
    Resolution, ResolveError,
    debug::{DebugFiles, DebugKey, Lookup, NamedFunction},
    resolve_with,
};

pub const STORE_RELAXED: &str = "_ZN4rocr3AMD8AqlQueue12StoreRelaxedEl";
pub const STORE_RELEASE: &str = "_ZN4rocr3AMD8AqlQueue12StoreReleaseEl";
pub const SIGNAL_STORE_RELAXED: &str = "_ZThn56_N4rocr3AMD8AqlQueue12StoreRelaxedEl";
pub const SIGNAL_STORE_RELEASE: &str = "_ZThn56_N4rocr3AMD8AqlQueue12StoreReleaseEl";
pub const ADD_WRITE_INDEX: &str = "_ZN4rocr3AMD8AqlQueue19AddWriteIndexAcqRelEm";
pub const STORE_WRITE_INDEX_RELAXED: &str = "_ZN4rocr3AMD8AqlQueue22StoreWriteIndexRelaxedEm";
pub const STORE_WRITE_INDEX_RELEASE: &str = "_ZN4rocr3AMD8AqlQueue22StoreWriteIndexReleaseEm";
pub const EXECUTE_PM4: &str = "_ZN4rocr3AMD8AqlQueue10ExecutePM4EPjm";

/// The last word of an input is the first name's address, and so on.
pub const ALL: [&str; 8] = [
    STORE_RELAXED,
    STORE_RELEASE,
    SIGNAL_STORE_RELAXED,
    SIGNAL_STORE_RELEASE,
    ADD_WRITE_INDEX,
    STORE_WRITE_INDEX_RELAXED,
    STORE_WRITE_INDEX_RELEASE,
    EXECUTE_PM4,
];

/// Returns the resolver's result for a library and a debug file whose addresses are in the library's last bytes.
pub fn resolve(elf: &[u8]) -> Result<Resolution, ResolveError> {
    resolve_with(elf, &mut Named(elf))
}

/// The names of `AqlQueue`, at addresses that the input chooses.
struct Named<'a>(&'a [u8]);

impl DebugFiles for Named<'_> {
    fn find(&mut self, _: &DebugKey) -> Lookup {
        let words = self.0.rchunks_exact(4).zip(ALL);
        let named = words.map(|(word, name)| NamedFunction {
            name: name.to_owned(),
            vaddr: word
                .first_chunk()
                .map_or(0, |word| u64::from(u32::from_le_bytes(*word))),
        });
        Lookup {
            tried: Vec::new(),
            found: Some(("the input's end".to_owned(), named.collect())),
        }
    }
}
