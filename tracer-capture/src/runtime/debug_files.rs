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

/// How the search found a place, and which condition its file must fulfil.
#[derive(Clone, Copy)]
pub(crate) enum By<'a> {
    /// The build-id must match.
    BuildId(&'a str),
    /// The checksum must match, and also the build-id if the library has one.
    Link(u32, Option<&'a str>),
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
    fn look(&mut self, key: &DebugKey) -> Lookup {
        let mut lookup = Lookup::default();
        for (place, by) in places(self.folder.as_deref(), key) {
            let file = self.in_root(&place);
            if lookup.settle(place, file, by) {
                return lookup;
            }
        }
        let Some(build_id) = &key.build_id else {
            let why_not = NotUsed::NotTried("the library has no build-id to search by".to_owned());
            lookup.tried.push(Tried {
                place: "debuginfod".to_owned(),
                why_not,
            });
            return lookup;
        };
        for cache in &self.caches {
            let path = cache.join(build_id).join("debuginfo");
            let file = open(&path);
            if lookup.settle(path.display().to_string(), file, By::BuildId(build_id)) {
                return lookup;
            }
        }
        match self.network.ask(build_id) {
            Ok(path) => {
                let file = open(&path);
                lookup.settle(path.display().to_string(), file, By::BuildId(build_id));
            }
            Err(why_not) => lookup.tried.push(Tried {
                place: "debuginfod-find".to_owned(),
                why_not,
            }),
        }
        lookup
    }
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
pub(crate) fn places<'a>(folder: Option<&str>, key: &'a DebugKey) -> Vec<(String, By<'a>)> {
    let mut places = Vec::new();
    let build_id = key.build_id.as_deref();
    if let Some((id, (first, rest))) = build_id.and_then(|id| Some((id, id.split_at_checked(2)?))) {
        places.push((format!("{SYSTEM}/.build-id/{first}/{rest}.debug"), By::BuildId(id)));
    }
    if let (Some((name, checksum)), Some(folder)) = (&key.link, folder) {
        let by = By::Link(*checksum, build_id);
        places.push((format!("{folder}/{name}"), by));
        places.push((format!("{folder}/.debug/{name}"), by));
        places.push((format!("{SYSTEM}{folder}/{name}"), by));
    }
    places
}

impl Lookup {
    /// Takes the file if it belongs to the library, else records why not. Returns whether it took the file.
    fn settle(&mut self, place: String, file: Result<File, NotUsed>, by: By<'_>) -> bool {
        self.settle_symbols(place, file.and_then(|file| examine(&file, by)))
    }

    /// Takes the symbols of a file that belongs to the library, else records why not. Returns whether it took them.
    pub(crate) fn settle_symbols(&mut self, place: String, symbols: Result<DebugSymbols, NotUsed>) -> bool {
        match symbols {
            Ok(symbols) => {
                self.found = Some((place, symbols.functions));
                true
            }
            Err(why_not) => {
                self.tried.push(Tried { place, why_not });
                false
            }
        }
    }
}

/// Checks that the file is of the same build, and returns its symbols.
fn examine(file: &File, by: By<'_>) -> Result<DebugSymbols, NotUsed> {
    let refused = |why: String| NotUsed::Refused(why);
    let metadata = file.metadata().map_err(|error| refused(error.to_string()))?;
    if !metadata.is_file() {
        return Err(refused("not a regular file".to_owned()));
    }
    judge(read(file).map_err(refused)?, by, |expected| {
        checksum::check(file, expected)
    })
}

/// Returns the symbols of a file if it is of the same build. `check` compares the checksum of the file's contents, and returns a
/// message if it differs.
pub(crate) fn judge(
    symbols: DebugSymbols,
    by: By<'_>,
    check: impl FnOnce(u32) -> Result<(), String>,
) -> Result<DebugSymbols, NotUsed> {
    let refused = |why: String| NotUsed::Refused(why);
    let (By::BuildId(build_id) | By::Link(_, Some(build_id))) = by else {
        let By::Link(checksum, None) = by else {
            return Ok(symbols);
        };
        return check(checksum).map(|()| symbols).map_err(refused);
    };
    match symbols.build_id.as_deref() {
        Some(other) if other == build_id => {}
        Some(other) => return Err(refused(format!("it belongs to another build: {other}"))),
        None => return Err(refused("it has no build-id, but the library has one".to_owned())),
    }
    if let By::Link(checksum, _) = by {
        check(checksum).map_err(refused)?;
    }
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
