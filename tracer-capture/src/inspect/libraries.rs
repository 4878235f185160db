//! HSA runtimes on this machine, and what the resolver finds in each.

use std::{
    collections::HashSet,
    fs::{File, Metadata, OpenOptions},
    io::Read,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use crate::runtime::{
    debug_files::{Network, Search},
    elf_peek,
    resolver::{
        self, Confidence, Decision, DoorbellSite, ExportSite, MAX_FILE, ProbePoint, QueueFunction, ReserveOperation,
        ReserveSite, Resolution, ResolverStep, SdmaSite, ThunkFlags,
    },
};

/// How long a person may wait for a debug file from the network: servers may have to unpack it first.
pub const DEBUGINFOD_PATIENCE: Duration = Duration::from_secs(120);

/// A library, and the resolver's result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Its path.
    pub path: String,
    /// How it was found: `option`, `ldconfig`, `system`, `LD_LIBRARY_PATH`, `rocm`, `python`.
    pub found_by: &'static str,
    /// Why nothing is known of it; `None` if it was resolved. If set, the lists below are empty.
    pub error: Option<String>,
    /// GNU build-id in hexadecimal.
    pub build_id: Option<String>,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// Whether `record` would take it for an HSA runtime when a process maps it.
    pub recognised: bool,
    /// Functions that ring AQL doorbells.
    pub doorbells: Vec<Site>,
    /// Functions that ring SDMA doorbells.
    pub sdma: Vec<Site>,
    /// Exported functions that advance write indexes. `record` probes the functions behind their API table instead, which only an
    /// initialised process shows.
    pub reserves: Vec<Site>,
    /// Exported functions that store to signals, if no doorbell function was found: `record` would then probe them, or the
    /// functions behind them.
    pub last_resort: Vec<Site>,
    /// `hsa_init`, at which tracer pauses processes until their reserve functions are known.
    pub init: Option<Site>,
    /// `hsa_queue_create`, whose calls distinguish the program's queues from the runtime's own.
    pub queue_create: Option<Site>,
    /// `hsa_amd_queue_create`, the same for queues that newer runtimes create by a description; older ones have none.
    pub queue_create_described: Option<Site>,
    /// Known functions of `AqlQueue` that `record` does not probe: it probes others, which lead to them or which they call.
    pub queue_functions: Vec<Site>,
    /// What the resolver did not find, and why; a sentence each.
    pub notes: Vec<String>,
    /// Every decision of the resolver, in order.
    pub account: Vec<Decision>,
}

/// A place for a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Site {
    /// What is at this place.
    pub role: String,
    /// The resolver step that found it.
    pub step: ResolverStep,
    /// The resolver's confidence that a probe there sees what it is meant to see.
    pub confidence: Confidence,
    /// Address of the function, as linked.
    pub function: u64,
    /// Address of the instruction, as linked.
    pub address: u64,
    /// Offset of the instruction in the file.
    pub file_offset: u64,
    /// Its kind: `nop`, `push`, `jcc`, `jmp`, `call`, `single-stepped`.
    pub instruction: String,
    /// Whether the kernel emulates it.
    pub emulated: bool,
    /// ns of a hit by the measurement of this run; `None` if it was not measured.
    pub ns: Option<u64>,
    /// Other decisions of the resolver, a phrase each.
    pub details: Vec<String>,
}

/// Examines a file.
#[must_use]
pub fn inspect(path: &Path, found_by: &'static str, debuginfod: bool, cost: &super::Cost) -> Library {
    let mut library = Library {
        path: path.display().to_string(),
        found_by,
        ..Library::default()
    };
    match read_library(path).and_then(|(file, bytes)| {
        library.recognised = elf_peek::peek(&file).names_hsa_init;
        let mut debug = Search::of_file(path, Network::new(debuginfod, DEBUGINFOD_PATIENCE));
        resolver::resolve_with(&bytes, &mut debug).map_err(|error| error.to_string())
    }) {
        Ok(resolution) => fill(&mut library, resolution, cost),
        Err(error) => library.error = Some(format!("{} can't be traced: {error}", path.display())),
    }
    library
}

/// Reads the whole file; describes the obstacle if it cannot.
pub fn read_library(path: &Path) -> Result<(File, Vec<u8>), String> {
    // Opening a FIFO would wait for its other end.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let mut file =
        opened.map_err(|e| format!("it can't be opened ({e}); name the library's file with --library FILE"))?;
    let metadata = file.metadata().map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("not a regular file; name the library's file with --library FILE".to_owned());
    }
    if metadata.len() > MAX_FILE {
        return Err(format!(
            "it has {} bytes, and no HSA runtime has more than {MAX_FILE}; name the library's file with --library FILE",
            metadata.len()
        ));
    }
    let mut bytes = Vec::new();
    // The file may still grow.
    let read = Read::by_ref(&mut file).take(MAX_FILE).read_to_end(&mut bytes);
    read.map_err(|e| format!("it can't be read: {e}"))?;
    Ok((file, bytes))
}

fn fill(library: &mut Library, resolution: Resolution, cost: &super::Cost) {
    let site = |point: ProbePoint, role: String, found: (ResolverStep, Confidence), details: Vec<String>| Site {
        role,
        step: found.0,
        confidence: found.1,
        function: point.function,
        address: point.vaddr,
        file_offset: point.file_offset,
        instruction: point.instruction.to_string(),
        emulated: point.instruction.is_emulated(),
        ns: cost.of(point.instruction),
        details,
    };
    let doorbell = |d: &DoorbellSite| site(d.probe, d.role.to_string(), (d.step, d.confidence), doorbell_details(d));
    let sdma = |s: &SdmaSite| {
        let role = format!("BlitSdma::UpdateWriteAndDoorbellRegister ({} bits)", s.width);
        site(s.probe, role, (s.step, s.confidence), sdma_details(s))
    };
    let queue_function = |f: &QueueFunction| {
        let queue = f.queue_offset.map(|offset| format!("queue at {}", from_rdi(offset)));
        let found = (f.step, f.confidence);
        site(f.probe, f.role.to_string(), found, Vec::from_iter(queue))
    };
    let export = |e: &ExportSite| {
        let found = (ResolverStep::Export, e.confidence);
        site(e.probe, e.names.join(", "), found, export_details(e))
    };
    let reserve = |r: &ReserveSite| {
        let operation = match r.operation {
            ReserveOperation::Add => "adds",
            ReserveOperation::Store => "stores",
            ReserveOperation::Cas => "compares and swaps",
        };
        let mut site = export(&r.export);
        site.details.insert(0, operation.to_owned());
        site
    };
    let last_resort = |e: &ExportSite| Site {
        confidence: Confidence::Low,
        ..export(e)
    };
    library.doorbells = resolution.doorbells.iter().map(doorbell).collect();
    library.sdma = resolution.sdma.iter().map(sdma).collect();
    library.queue_functions = resolution.queue_functions.iter().map(queue_function).collect();
    library.reserves = resolution.exports.reserves.iter().map(reserve).collect();
    library.last_resort = resolution.last_resort().iter().map(last_resort).collect();
    library.init = resolution.exports.init.as_ref().map(export);
    library.queue_create = resolution.exports.queue_create.as_ref().map(export);
    library.queue_create_described = resolution.exports.queue_create_described.as_ref().map(export);
    library.build_id = resolution.build_id;
    library.soname = resolution.soname;
    library.notes = resolution.notes;
    library.account = resolution.account;
}

fn doorbell_details(site: &DoorbellSite) -> Vec<String> {
    let stores: Vec<String> = site.doorbell_stores.iter().map(|s| format!("{s:#x}")).collect();
    let mut details = vec![
        format!("signal at {}", from_rdi(site.signal_offset)),
        format!("value in {:?}", site.value_register).to_lowercase(),
        format!("doorbell stored at {}", stores.join(" and ")),
    ];
    if site.thunk_bypass {
        details.push("may call a driver function (hsaKmtQueueRingDoorbell) instead of storing".to_owned());
        details.push(match &site.thunk_flags {
            None => "the condition for that is unknown".to_owned(),
            Some(ThunkFlags { pointer, hops, flags }) => {
                let hops: Vec<String> = hops.iter().map(|hop| format!(" -> {hop:+#x}")).collect();
                let flags: Vec<String> = flags.iter().map(|flag| format!("{flag:+#x}")).collect();
                let (hops, flags) = (hops.concat(), flags.join(", "));
                format!("if one of the bytes {flags} behind {pointer:#x}{hops} is not 0")
            }
        });
    }
    details
}

fn sdma_details(site: &SdmaSite) -> Vec<String> {
    let (from, to) = (site.curr_index_register, site.new_index_register);
    vec![
        format!("doorbell pointer at {}", from_rdi(site.doorbell_ptr_offset)),
        format!("write pointer at {}", from_rdi(site.wptr_ptr_offset)),
        format!("indexes in {from:?} and {to:?}").to_lowercase(),
        format!("doorbell stored at {:#x}", site.doorbell_store),
    ]
}

fn export_details(site: &ExportSite) -> Vec<String> {
    let table = site.table.map(|t| {
        format!(
            "jumps through slot {:#x} of the API table that {:#x} points to",
            t.slot_offset, t.pointer_vaddr
        )
    });
    Vec::from_iter(table)
}

/// Returns a displacement as assemblers print it: `rdi-0x10`, not its two's complement.
fn from_rdi(displacement: i16) -> String {
    let sign = if displacement < 0 { '-' } else { '+' };
    format!("rdi{sign}{:#x}", displacement.unsigned_abs())
}

/// Returns the runtimes in the usual places, each file once, with the first way in which it was found.
#[must_use]
pub fn search() -> Vec<(PathBuf, &'static str)> {
    let mut found = super::places::all();
    // Links to one file are one library.
    let mut seen = HashSet::new();
    let mut is_new = |file: &Metadata| file.is_file() && seen.insert((file.dev(), file.ino()));
    found.retain(|(path, _)| path.metadata().is_ok_and(|file| is_new(&file)));
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn error(path: &Path) -> String {
        inspect(path, "option", false, &super::super::Cost::default())
            .error
            .unwrap()
    }

    #[test]
    fn a_file_that_is_no_library_gives_one_sentence() {
        assert!(error(Path::new("/no/such/file")).contains("can't be opened"));
        assert!(error(Path::new("/etc/passwd")).contains("not an ELF file"));
        assert!(error(Path::new("/dev/zero")).contains("not a regular file"));
        assert!(error(Path::new("/etc")).contains("not a regular file"));
        assert!(error(Path::new("/proc/self/exe")).contains("not an HSA runtime"));
    }

    #[test]
    fn a_library_that_is_cut_short_is_an_error_wherever() {
        let whole = fs::read("/proc/self/exe").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cut.so");
        for len in [0, 3, 4, 17, 63, 64, 200, 5000] {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(error(&path).contains("can't be traced"), "{len} bytes");
        }
    }

    #[test]
    fn displacements_carry_their_sign() {
        assert_eq!(from_rdi(-0x20), "rdi-0x20");
        assert_eq!(from_rdi(0x98), "rdi+0x98");
    }
}
