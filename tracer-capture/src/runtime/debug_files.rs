//! Separate debug files: their locations, and which of them belongs to a library.
//!
//! The search uses folders below the traced process's root, because a container has folders of its own. A link in there can't lead
//! out of that root. tracer trusts a debug file only if it is of the same build, and even then only as a hint: the resolver
//! examines the code.

mod checksum;
mod network;
mod reader;

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, ResolveFlags};

pub(crate) use checksum::{MAX_FILE as MAX_SUMMED, compare as compare_checksums};
pub use network::Network;
pub(crate) use network::caches;
pub(crate) use reader::table;
pub use reader::{DebugSymbols, Source, read};

use crate::runtime::resolver::debug::{DebugFiles, DebugKey, Lookup, NotUsed, Tried};

/// The folder in which distributions install debug files.
const SYSTEM: &str = "/usr/lib/debug";

/// Searches for the debug file of one library.
pub struct Search {
    /// The root folder of the process that maps the library.
    root: Result<OwnedFd, String>,
    /// The library's folder below that root.
    folder: Option<String>,
    /// debuginfod's caches, below this process's own root.
    caches: Vec<PathBuf>,
    network: Network,
}

/// What shows that a file belongs to the library: each that is present must match.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    build_id: Option<&'a str>,
    checksum: Option<u32>,
}

/// A file that may be the debug file.
#[derive(Clone, Copy)]
pub(crate) enum Candidate<'a> {
    /// A path below the root of the process that maps the library.
    InRoot(&'a str),
    /// A path below this process's own root.
    Own(&'a Path),
}

impl Search {
    /// Creates a search for a library file below this process's own root.
    #[must_use]
    pub fn of_file(path: &Path, network: Network) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self::new(Path::new("/"), &path.to_string_lossy(), caches(), network)
    }

    /// Creates a search for a library at `path` in `root`.
    #[must_use]
    pub fn new(root: &Path, path: &str, caches: Vec<PathBuf>, network: Network) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self {
            root: rustix::fs::open(root, flags, Mode::empty()).map_err(|e| io::Error::from(e).to_string()),
            folder: path.rsplit_once('/').map(|(folder, _)| folder.to_owned()),
            caches,
            network,
        }
    }

    fn in_root(&self, path: &str) -> Result<File, NotUsed> {
        let root = self.root.as_ref().map_err(|error| NotUsed::Refused(error.clone()))?;
        // Without `NONBLOCK`, opening a FIFO would wait for its other end.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(root.as_fd(), path, flags, Mode::empty(), resolve);
        opened.map(File::from).map_err(|error| not_opened(&error.into()))
    }
}

impl DebugFiles for Search {
    fn find(&mut self, key: &DebugKey) -> Lookup {
        let (folder, caches) = (self.folder.as_deref(), || self.caches.clone());
        search(key, folder, caches, &self.network, |candidate, by| {
            let file = match candidate {
                Candidate::InRoot(path) => self.in_root(path),
                Candidate::Own(path) => open(path),
            };
            examine(&file?, by)
        })
    }
}

/// Searches in order: the places below the root of the process, debuginfod's caches, its servers. `folder` is the library's folder.
/// `symbols` reads a file if it belongs to the library.
pub(crate) fn search(
    key: &DebugKey,
    folder: Option<&str>,
    caches: impl FnOnce() -> Vec<PathBuf>,
    network: &Network,
    symbols: impl Fn(Candidate<'_>, By<'_>) -> Result<DebugSymbols, NotUsed>,
) -> Lookup {
    let mut lookup = Lookup::default();
    for (place, by) in places(folder, key) {
        let found = symbols(Candidate::InRoot(&place), by);
        if lookup.settle(place, found) {
            return lookup;
        }
    }
    let Some(build_id) = key.build_id.as_deref() else {
        let why_not = NotUsed::NotTried("the library has no build-id to search by".to_owned());
        lookup.settle("debuginfod".to_owned(), Err(why_not));
        return lookup;
    };
    let by = By {
        build_id: Some(build_id),
        checksum: None,
    };
    let mut settle_own = |path: &Path| lookup.settle(path.display().to_string(), symbols(Candidate::Own(path), by));
    for cache in caches() {
        if settle_own(&cache.join(build_id).join("debuginfo")) {
            return lookup;
        }
    }
    match network.ask(build_id) {
        Ok(path) => settle_own(&path),
        Err(why_not) => lookup.settle("debuginfod-find".to_owned(), Err(why_not)),
    };
    lookup
}

/// Converts a path of /proc/PID/maps to a path inside the process's root. `shown` is the target of the link to that root. The paths
/// of a process under chroot start outside its root, with that target.
pub(crate) fn inside(path: &str, shown: &Path) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let inside = Path::new(path).strip_prefix(shown).unwrap_or(Path::new(path));
    Path::new("/").join(inside).to_string_lossy().into_owned()
}

/// Returns paths below the root, in order: first the one that the build-id names, then those that `.gnu_debuglink` names (GDB's
/// manual, "Separate Debug Files"). `folder` is the library's folder.
fn places<'a>(folder: Option<&str>, key: &'a DebugKey) -> Vec<(String, By<'a>)> {
    let mut places = Vec::new();
    let build_id = key.build_id.as_deref();
    let by = |checksum| By { build_id, checksum };
    if let Some((first, rest)) = build_id.and_then(|id| id.split_at_checked(2)) {
        places.push((format!("{SYSTEM}/.build-id/{first}/{rest}.debug"), by(None)));
    }
    if let (Some((name, checksum)), Some(folder)) = (&key.link, folder) {
        let by = by(Some(*checksum));
        places.push((format!("{folder}/{name}"), by));
        places.push((format!("{folder}/.debug/{name}"), by));
        places.push((format!("{SYSTEM}{folder}/{name}"), by));
    }
    places
}

impl Lookup {
    /// Takes the symbols of a file that belongs to the library, else records why not. Returns whether it took them.
    fn settle(&mut self, place: String, symbols: Result<DebugSymbols, NotUsed>) -> bool {
        match symbols {
            Ok(symbols) => self.found = Some((place, symbols.functions)),
            Err(why_not) => self.tried.push(Tried { place, why_not }),
        }
        self.found.is_some()
    }
}

/// Checks that the file is of the same build, and returns its symbols.
fn examine(file: &File, by: By<'_>) -> Result<DebugSymbols, NotUsed> {
    let metadata = file.metadata().map_err(|error| NotUsed::Refused(error.to_string()))?;
    if !metadata.is_file() {
        return Err(NotUsed::Refused("not a regular file".to_owned()));
    }
    let symbols = read(file).map_err(NotUsed::Refused)?;
    judge(symbols, by, |expected| checksum::check(file, expected))
}

/// Returns the symbols of a file if it is of the same build. `check` compares the checksum of the file's contents, and returns a
/// message if it differs.
pub(crate) fn judge(
    symbols: DebugSymbols,
    by: By<'_>,
    check: impl FnOnce(u32) -> Result<(), String>,
) -> Result<DebugSymbols, NotUsed> {
    if by.build_id.is_some() && by.build_id != symbols.build_id.as_deref() {
        return Err(NotUsed::Refused(match symbols.build_id {
            Some(other) => format!("it belongs to another build: {other}"),
            None => "it has no build-id, but the library has one".to_owned(),
        }));
    }
    by.checksum.map_or(Ok(()), check).map_err(NotUsed::Refused)?;
    Ok(symbols)
}

/// Opens a file below this process's own root.
fn open(path: &Path) -> Result<File, NotUsed> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    opened.map_err(|error| not_opened(&error))
}

pub(crate) fn not_opened(error: &io::Error) -> NotUsed {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NotUsed::Absent("no such file".to_owned()),
        _ => NotUsed::Refused(format!("cannot open it: {error}")),
    }
}
