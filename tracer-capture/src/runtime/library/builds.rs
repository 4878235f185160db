//! What tracer knows about builds, independent of the file: each container has its own file of a build.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use tracer_common::api::Layer;

use super::Runtime;
use crate::{
    api_choice::Api,
    confined::{Examine, File, NotRead, ProcFile, Sealed},
    probes::api::KEEP,
    runtime::{
        debug_files::Network,
        elf_peek::Peek,
        file_server,
        resolver::{
            Entries, Resolution, ResolveError,
            debug::{DebugFiles, DebugKey, Lookup},
        },
    },
    target::proc_maps::Mapping,
};

/// Time limit for a network request for a debug file, if the user allows such requests.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A resolution, or the reason why there is none, inside the result of reading the file.
type Resolved<T> = Result<Result<T, ResolveError>, NotRead>;

/// The builds that were examined.
pub struct Builds {
    api: Api,
    /// Id of the invoking user.
    user: u32,
    network: Network,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By build-id and a hash of the contents, because two files may claim the same build-id.
    resolved: HashMap<(String, u64), Arc<Resolution>>,
    /// The debug files that were found.
    debug: HashMap<DebugKey, Lookup>,
    /// The builds for which tracer has asked the network.
    asked: HashSet<String>,
}

/// The kind of a file that gets probes.
pub enum Found {
    /// An HSA runtime.
    Runtime(Box<Runtime>),
    /// A library of HIP or OpenCL, with a hash of its contents and its functions.
    Client(File, u64, Entries),
}

impl Builds {
    /// Creates an empty set.
    pub fn new(debuginfod: bool, api: Api, user: u32) -> Self {
        Self {
            api,
            user,
            network: Network::new(debuginfod, PATIENCE),
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Examines a mapped file. Returns `None` if it is neither a runtime nor a library of HIP or OpenCL.
    ///
    /// # Errors
    /// [`NotRead`]. The inner error is the reason why the file can't be traced.
    pub fn load(
        &self,
        examine: &Examine<'_>,
        mapping: &Mapping,
        file: File,
    ) -> Result<Result<Option<Found>, String>, NotRead> {
        let peek = examine.peek(&file)?;
        let client = match peek {
            Peek { is_hip: true, .. } => Some(Layer::Hip),
            Peek { is_opencl: true, .. } => Some(Layer::OpenCl),
            _ => None,
        };
        let client = client.filter(|&layer| self.api.wants(layer));
        if !peek.names_hsa_init && client.is_none() {
            return Ok(Ok(None));
        }
        if let Some(why) = self.is_served_by_others(examine, mapping, &file)? {
            return Ok(Err(why));
        }
        let library = examine.library(&file)?;
        if let Some(layer) = client {
            let entries = examine.entries(&library, layer, &KEEP)?;
            let contents = hash(library.bytes());
            let found = entries.map(|entries| Some(Found::Client(file, contents, entries)));
            return Ok(found.map_err(|error| error.to_string()));
        }
        let resolution = match self.resolve(examine, mapping, &library)? {
            Ok(resolution) => resolution,
            // A client of the runtime also names `hsa_init`.
            Err(ResolveError::NoHsaRuntime) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let entries = if self.api.wants(Layer::Hsa) {
            examine.entries(&library, Layer::Hsa, &KEEP)?
        } else {
            Ok(Entries::default())
        };
        let found = entries.map(|entries| {
            Some(Found::Runtime(Box::new(Runtime {
                id: mapping.file.clone(),
                path: mapping.path.clone(),
                contents: hash(library.bytes()),
                resolution,
                entries,
                initialised: AtomicBool::new(false),
                proxies: Mutex::new(BTreeSet::new()),
                file,
            })))
        });
        Ok(found.map_err(|error| error.to_string()))
    }

    /// Returns why a file gets no probes, if a program of a user other than root and the invoking user serves its file system.
    fn is_served_by_others(
        &self,
        examine: &Examine<'_>,
        mapping: &Mapping,
        file: &File,
    ) -> Result<Option<String>, NotRead> {
        if file.info().file_system != file_server::FUSE {
            return Ok(None);
        }
        let by = file_server::by(mapping, &examine.proc_file(ProcFile::Mountinfo)?);
        if by.is_some_and(|user| user == 0 || user == self.user) {
            return Ok(None);
        }
        let whom = by.map_or_else(|| "an unknown user".to_owned(), |user| format!("user {user}"));
        Ok(Some(format!(
            "a program of {whom} serves its file system, and could block tracer for ever; copy the library to another file system"
        )))
    }

    fn resolve(&self, examine: &Examine<'_>, mapping: &Mapping, library: &Sealed) -> Resolved<Arc<Resolution>> {
        let key = examine.build_id(library)?.map(|id| (id, hash(library.bytes())));
        if let Some(known) = key.as_ref().and_then(|key| self.known().resolved.get(key).cloned()) {
            return Ok(Ok(known));
        }
        let mut debug = Remembered {
            builds: self,
            examine,
            path: &mapping.path,
        };
        let resolution = examine.resolve(library, &mut debug)?.map(Arc::new);
        if let (Some(key), Ok(resolution)) = (key, &resolution) {
            self.known().resolved.insert(key, Arc::clone(resolution));
        }
        Ok(resolution)
    }
}

/// Debug files of builds. tracer searches for each file until it finds it, and asks the network for it once.
struct Remembered<'a> {
    builds: &'a Builds,
    examine: &'a Examine<'a>,
    path: &'a str,
}

impl DebugFiles for Remembered<'_> {
    fn find(&mut self, key: &DebugKey) -> Lookup {
        let mut network = self.builds.network.clone();
        {
            let mut known = self.builds.known();
            if let Some(lookup) = known.debug.get(key) {
                return lookup.clone();
            }
            network.allowed &= key.build_id.clone().is_some_and(|id| known.asked.insert(id));
        }
        let lookup = self.examine.debug_files(self.path, network).find(key);
        if lookup.found.is_some() {
            self.builds.known().debug.insert(key.clone(), lookup.clone());
        }
        lookup
    }
}

/// Returns a hash of the contents of a file.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
