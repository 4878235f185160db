//! The script of `tracer record --script`: it captures by ftrace on a machine where tracer is not installed.
//!
//! The script defines a uprobe at each place where the given runtime rings doorbells. Its fetch arguments follow constant offsets
//! from the registers to the queue. The address of a packet is not at a constant offset, because it depends on the packet's index.
//! So two histogram triggers compute it: the first one of a doorbell, the second one of the synthetic event that the first one
//! writes. An event probe on the second synthetic event reads the packets there. All of this happens in the thread that rings, before
//! the doorbell is stored.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tracer_common::queue::{BASE_ADDRESS, READ_DISPATCH_ID, SIGNAL_QUEUE_PTR, SIZE, WRITE_DISPATCH_ID};
use tracer_core::{script, words::Named};

use crate::{
    inspect::{DEBUGINFOD_PATIENCE, read_library},
    probes::driver_event,
    runtime::{
        debug_files::{Network, Search},
        resolver::{self, DoorbellSite, ResolveError},
    },
};

/// The script, with a name between `@` for what is to be filled in.
const TEMPLATE: &str = include_str!("script/capture.sh");

/// Why there is no script for a library.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file could not be read.
    #[error("{0}: {1}")]
    Read(PathBuf, String),
    /// The file is no HSA runtime.
    #[error("{0}: {1}")]
    Resolve(PathBuf, ResolveError),
    /// The script would miss doorbells.
    #[error(
        "{0}: tracer does not know where it rings doorbells (see `tracer doctor --library`), and a script cannot use the exported \
         functions instead"
    )]
    NoDoorbells(PathBuf),
    /// The path is not UTF-8.
    #[error("{0}: its path is not UTF-8; copy or link the file to another path")]
    Path(PathBuf),
}

/// Returns the script for a copy of the HSA runtime. `debuginfod` allows debug files from the network.
///
/// # Errors
/// Fails if the file cannot be read, or if the places of its doorbells are not known.
pub fn for_library(path: &Path, debuginfod: bool) -> Result<String, ScriptError> {
    let (_, bytes) = read_library(path).map_err(|reason| ScriptError::Read(path.to_owned(), reason))?;
    let mut debug = Search::of_file(path, Network::new(debuginfod, DEBUGINFOD_PATIENCE));
    let resolution =
        resolver::resolve_with(&bytes, &mut debug).map_err(|error| ScriptError::Resolve(path.to_owned(), error))?;
    if resolution.doorbells.is_empty() {
        return Err(ScriptError::NoDoorbells(path.to_owned()));
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = absolute.to_str().ok_or_else(|| ScriptError::Path(path.to_owned()))?;
    let checksum: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(filled(name, &checksum, &resolution.doorbells))
}

fn filled(library: &str, checksum: &str, doorbells: &[DoorbellSite]) -> String {
    let site = |site: &DoorbellSite| format!("{:#x} {:+}", site.probe.file_offset, site.signal_offset);
    let sites: Vec<String> = doorbells.iter().map(site).collect();
    let driver_events: Vec<&str> = driver_event::EVENTS.iter().map(|(kind, ..)| kind.name()).collect();
    let text = [
        ("VERSION", env!("CARGO_PKG_VERSION").to_owned()),
        ("SHA256", checksum.to_owned()),
        ("SITES", sites.join("\n")),
        ("DRIVER_EVENTS", driver_events.join(" ")),
        ("HEADER", script::HEADER.to_owned()),
        ("GROUP", script::GROUP.to_owned()),
        ("END", script::END.to_owned()),
        ("DOORBELL", script::DOORBELL.to_owned()),
        ("PACKETS_EVENT", script::PACKETS.to_owned()),
        ("WRAPPED", script::WRAPPED.to_owned()),
        ("IOCTL_ENTER", script::IOCTL_ENTER.to_owned()),
        ("IOCTL_EXIT", script::IOCTL_EXIT.to_owned()),
        ("FORMAT", script::FORMAT.to_string()),
        ("PACKETS", script::PACKETS_PER_DOORBELL.to_string()),
        ("LAST", (script::PACKETS_PER_DOORBELL - 1).to_string()),
        ("QUEUE", SIGNAL_QUEUE_PTR.to_string()),
        ("BASE", BASE_ADDRESS.to_string()),
        ("SIZE", SIZE.to_string()),
        ("WRITE", WRITE_DISPATCH_ID.to_string()),
        ("READ", READ_DISPATCH_ID.to_string()),
        // The path comes last: it may have any signs.
        ("LIBRARY", format!("'{}'", library.replace('\'', r"'\''"))),
    ];
    text.iter().fold(TEMPLATE.to_owned(), |script, (name, value)| {
        script.replace(&format!("@{name}@"), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_filled_in() {
        let script = filled("/opt/it's/lib.so", "00ff", &[]);
        let is_name = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        let left: Vec<&str> = script.split('@').filter(is_name).collect();
        assert_eq!(left, [""; 0]);
        assert!(script.contains(r"library='/opt/it'\''s/lib.so'"));
    }

    #[test]
    fn a_file_that_is_no_runtime_has_no_script() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libhsa-runtime64.so.1");
        assert!(matches!(for_library(&file, false), Err(ScriptError::Read(..))));
        std::fs::write(&file, "no ELF file").unwrap();
        assert!(matches!(for_library(&file, false), Err(ScriptError::Resolve(..))));
    }
}
