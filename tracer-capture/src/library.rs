//! Which mapped files are HSA runtimes, and what the resolver found in them. Each file is looked at once.

use std::{collections::HashMap, fs::File, io::Read};

use crate::{
    elf_peek,
    inventory::Library,
    proc_maps::{FileId, Mapping},
    resolver::{self, Resolution, ResolveError},
};

/// Files seen so far.
#[derive(Default)]
pub struct Libraries {
    seen: HashMap<FileId, Option<Runtime>>,
}

/// An HSA runtime.
pub struct Runtime {
    /// The file, kept open so that its inode can't be reused for another.
    pub file: File,
    /// Path as the first process saw it.
    pub path: String,
    /// What the resolver found.
    pub resolution: Resolution,
    /// Whether the reserve functions have been looked for in an initialised process.
    pub initialised: bool,
}

/// What looking at a mapping gave.
pub enum Look {
    /// Seen before, or not an HSA runtime.
    Nothing,
    /// An HSA runtime that was not known.
    Runtime(Library),
    /// It names `hsa_init`, but can't be traced.
    Broken(String),
}

impl Libraries {
    /// Looks at a mapping of process `pid`.
    pub fn look(&mut self, pid: u32, mapping: &Mapping) -> Look {
        if self.seen.contains_key(&mapping.file) {
            return Look::Nothing;
        }
        match load(pid, mapping) {
            Ok(Some(runtime)) => {
                let library = Library {
                    path: mapping.path.clone(),
                    device: mapping.file.device.clone(),
                    inode: mapping.file.inode,
                    build_id: runtime.resolution.build_id.clone(),
                    soname: runtime.resolution.soname.clone(),
                    first_pid: pid,
                };
                self.seen.insert(mapping.file.clone(), Some(runtime));
                Look::Runtime(library)
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

    /// The runtime in this file, if it is one.
    pub fn runtime(&mut self, file: &FileId) -> Option<&mut Runtime> {
        self.seen.get_mut(file)?.as_mut()
    }
}

/// `None`: no HSA runtime, or a file that is gone again.
fn load(pid: u32, mapping: &Mapping) -> Result<Option<Runtime>, String> {
    let Ok(mut file) = mapping.open(pid) else {
        return Ok(None);
    };
    if !elf_peek::names_hsa_init(&file) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    match resolver::resolve(&bytes) {
        Ok(resolution) => Ok(Some(Runtime {
            file,
            path: mapping.path.clone(),
            resolution,
            initialised: false,
        })),
        // A client of the runtime names hsa_init too.
        Err(ResolveError::NoHsaRuntime) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
