//! Which mapped files are HSA runtimes or HIP, and what the resolver found in them. Each file is looked at once.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs::File,
    hash::{DefaultHasher, Hasher},
    io::Read,
    sync::Arc,
    time::Duration,
};

use tracer_common::api::Layer;

use crate::{
    debug_files::{Network, Search},
    elf_peek,
    inventory::Library,
    probes::api::{Api, KEEP},
    proc_maps::{FileId, Mapping},
    resolver::{
        self, Entries, MAX_FILE, Resolution, ResolveError,
        debug::{DebugFiles, DebugKey, Lookup},
    },
};

/// How long a process may wait for a debug file from the network, if the user allows that.
const PATIENCE: Duration = Duration::from_secs(10);

/// Files seen so far.
pub struct Libraries {
    seen: HashMap<FileId, Option<Runtime>>,
    builds: Builds,
    /// HIP libraries: kept open so that their inodes can't be reused.
    hip: Vec<File>,
}

/// What is known of builds, whichever file they came in: containers have files of their own.
struct Builds {
    api: Api,
    network: Network,
    /// By build-id and a hash of the contents: two files may claim one build-id.
    resolved: HashMap<(String, u64), Arc<Resolution>>,
    /// Debug files that were found.
    debug: HashMap<DebugKey, Lookup>,
    /// Builds that the network was asked for.
    asked: HashSet<String>,
}

/// An HSA runtime.
pub struct Runtime {
    /// The file, kept open so that its inode can't be reused for another.
    pub file: File,
    /// Path as the first process saw it.
    pub path: String,
    /// What the resolver found.
    pub resolution: Arc<Resolution>,
    /// The functions whose calls are captured.
    pub entries: Entries,
    /// Whether the reserve functions have been looked for in an initialised process.
    pub initialised: bool,
    /// Where in the file functions that ring proxies were found.
    pub proxies: BTreeSet<u64>,
}

/// A HIP library.
pub struct Hip {
    /// What it is.
    pub library: Library,
    /// The file.
    pub file: File,
    /// The functions whose calls are captured.
    pub entries: Entries,
}

/// What a file turned out to be.
enum Found {
    Runtime(Runtime),
    Hip(File, Entries),
}

/// What looking at a mapping gave.
pub enum Look {
    /// Seen before, or nothing that gets probes.
    Nothing,
    /// An HSA runtime that was not known.
    Runtime(Library),
    /// A HIP library that was not known.
    Hip(Box<Hip>),
    /// It is one of them, but can't be traced.
    Broken(String),
}

impl Libraries {
    /// None yet. `debuginfod`: whether debug files may come from the network.
    pub fn new(debuginfod: bool, api: Api) -> Self {
        let builds = Builds {
            api,
            network: Network::new(debuginfod, PATIENCE),
            resolved: HashMap::new(),
            debug: HashMap::new(),
            asked: HashSet::new(),
        };
        Self {
            seen: HashMap::new(),
            builds,
            hip: Vec::new(),
        }
    }

    /// Looks at a mapping of process `pid`.
    pub fn look(&mut self, pid: u32, mapping: &Mapping) -> Look {
        if self.seen.contains_key(&mapping.file) {
            return Look::Nothing;
        }
        let library = Library {
            path: mapping.path.clone(),
            device: mapping.file.device.clone(),
            inode: mapping.file.inode,
            first_pid: pid,
            ..Library::default()
        };
        match self.builds.load(pid, mapping) {
            Ok(Some(Found::Runtime(runtime))) => {
                let library = Library {
                    build_id: runtime.resolution.build_id.clone(),
                    soname: runtime.resolution.soname.clone(),
                    thunk: runtime.resolution.may_hand_over(),
                    ..library
                };
                self.seen.insert(mapping.file.clone(), Some(runtime));
                Look::Runtime(library)
            }
            Ok(Some(Found::Hip(file, entries))) => {
                self.seen.insert(mapping.file.clone(), None);
                self.hip.extend(file.try_clone());
                let library = Library {
                    build_id: entries.build_id.clone(),
                    soname: entries.soname.clone(),
                    hip: true,
                    ..library
                };
                Look::Hip(Box::new(Hip { library, file, entries }))
            }
            Ok(None) => {
                self.seen.insert(mapping.file.clone(), None);
                Look::Nothing
            }
            Err(reason) => {
                self.seen.insert(mapping.file.clone(), None);
                Look::Broken(format!("{} can't be traced: {reason}", mapping.path))
            }
        }
    }

    /// How many runtimes are known.
    pub fn runtimes(&self) -> usize {
        self.seen.values().flatten().count()
    }

    /// The runtime in this file, if it is one.
    pub fn runtime(&mut self, file: &FileId) -> Option<&mut Runtime> {
        self.seen.get_mut(file)?.as_mut()
    }
}

impl Builds {
    /// `None`: neither of them, or a file that is gone again.
    fn load(&mut self, pid: u32, mapping: &Mapping) -> Result<Option<Found>, String> {
        let Ok(mut file) = mapping.open(pid) else {
            return Ok(None);
        };
        let peek = elf_peek::peek(&file);
        let hip = peek.is_hip && self.api.wants(Layer::Hip);
        if !peek.names_hsa_init && !hip {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let read = Read::by_ref(&mut file).take(MAX_FILE + 1).read_to_end(&mut bytes);
        read.map_err(|e| e.to_string())?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(ResolveError::TooLarge.to_string());
        }
        let entries = |layer| resolver::entries(&bytes, layer, &KEEP).map_err(|e| e.to_string());
        if hip {
            return Ok(Some(Found::Hip(file, entries(Layer::Hip)?)));
        }
        match self.resolve(pid, mapping, &bytes) {
            Ok(resolution) => Ok(Some(Found::Runtime(Runtime {
                path: mapping.path.clone(),
                resolution,
                entries: if self.api.wants(Layer::Hsa) {
                    entries(Layer::Hsa)?
                } else {
                    Entries::default()
                },
                initialised: false,
                proxies: BTreeSet::new(),
                file,
            }))),
            // A client of the runtime names hsa_init too.
            Err(ResolveError::NoHsaRuntime) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn resolve(&mut self, pid: u32, mapping: &Mapping, bytes: &[u8]) -> Result<Arc<Resolution>, ResolveError> {
        let key = resolver::build_id(bytes).map(|id| (id, hash(bytes)));
        if let Some(known) = key.as_ref().and_then(|key| self.resolved.get(key)) {
            return Ok(Arc::clone(known));
        }
        let mut debug = Remembered {
            builds: self,
            pid,
            path: &mapping.path,
        };
        let resolution = Arc::new(resolver::resolve_with(bytes, &mut debug)?);
        if let Some(key) = key {
            self.resolved.insert(key, Arc::clone(&resolution));
        }
        Ok(resolution)
    }
}

/// Debug files of builds, each looked for until it is found, and asked for once.
struct Remembered<'a> {
    builds: &'a mut Builds,
    pid: u32,
    path: &'a str,
}

impl DebugFiles for Remembered<'_> {
    fn look(&mut self, key: &DebugKey) -> Lookup {
        if let Some(known) = self.builds.debug.get(key) {
            return known.clone();
        }
        let mut network = self.builds.network.clone();
        let asked = key.build_id.clone().is_none_or(|id| !self.builds.asked.insert(id));
        network.allowed &= !asked;
        let lookup = Search::of_process(self.pid, self.path, network).look(key);
        if lookup.found.is_some() {
            self.builds.debug.insert(key.clone(), lookup.clone());
        }
        lookup
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
