//! An instance of tracefs: buffers of its own, and the events that write there.

use std::{
    ffi::CStr,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    CaptureError,
    kernel::uprobe_events::{Definition, INSTANCES, Named, remove_instance},
    pause::guardian::Left,
    probes::tracefs,
    samples::{Attach, Attachments, OUR_IOCTLS, Place, Places, Program},
    sys,
};

/// The smallest buffer of a processor, KiB.
const LEAST_KB: usize = 64;

/// The length of a short file, bytes.
const SHORT: usize = 4096;

/// The fetch arguments of a uprobe at a function whose first two arguments count.
const REGISTERS: &str = "si=%si:x64 di=%di:x64";
/// The fetch arguments where the C library calls the kernel for an ioctl: descriptor, command and address, and the bytes there.
const IOCTL: &str = "fd=%di:x64 cmd=%si:x64 arg=%dx:x64 bytes=+0(%dx):x64[16]";

/// An instance. Dropping it removes it.
pub struct Instance {
    /// Defines uprobes.
    pub named: Named,
    /// What the events mean.
    pub places: Places,
    instances: File,
    path: PathBuf,
    /// Definitions of probes that were detached. To remove one, the kernel empties the buffers of every instance that used it, and
    /// forgets what it dropped. So they stay until the instance is gone.
    detached: Mutex<Vec<Definition>>,
}

/// An attached probe. Dropping it detaches.
struct Attachment {
    instance: Arc<Instance>,
    definition: Option<Definition>,
}

impl Instance {
    /// Creates an instance with buffers of `bytes` for all processors together. The calling thread must see tracefs.
    ///
    /// # Errors
    /// Fails if tracefs is not mounted, or if this process may not write to it.
    pub fn create(bytes: usize) -> Result<Self, CaptureError> {
        let named = Named::open().map_err(|error| failed("opening uprobe_events", &error))?;
        let instances = named.root.join(INSTANCES);
        let path = instances.join(&named.group);
        let folder = File::open(&instances).map_err(|error| failed("opening its instances", &error))?;
        fs::create_dir(&path).map_err(|error| failed("creating an instance", &error))?;
        let instance = Self {
            named,
            places: Places::default(),
            instances: folder,
            path,
            detached: Mutex::default(),
        };
        let processors = sys::online_processors().map_or(1, |online| online.len().max(1));
        let size = (bytes / processors / 1024).max(LEAST_KB);
        // What has no room is dropped and counted, so that what was read stays whole.
        for (file, value) in [
            ("trace_clock", "mono"),
            ("options/overwrite", "0"),
            ("buffer_size_kb", &size.to_string()),
        ] {
            instance.write(file, value).map_err(|error| failed(file, &error))?;
        }
        // Names of processes come from elsewhere.
        let _ = instance.write("options/record-cmd", "0");
        Ok(instance)
    }

    /// Makes an event write records, of which those that do not match the filter are dropped. `program`: what a record means.
    ///
    /// # Errors
    /// Fails if the kernel does not have the event, or refuses it.
    pub fn enable(
        &self,
        group: &str,
        event: &str,
        filter: Option<&str>,
        program: Option<Program>,
    ) -> Result<(), CaptureError> {
        let number = tracefs::number(group, event)?;
        if let Some(program) = program {
            let displacement = 0;
            self.places.add([number], Place { program, displacement });
        }
        let name = format!("{group}/{event}");
        self.filter_and_enable(&name, filter)
            .map_err(|error| CaptureError::system("enabling a trace event", error))
    }

    fn filter_and_enable(&self, name: &str, filter: Option<&str>) -> io::Result<()> {
        if let Some(filter) = filter {
            // Without the filter more records come, and none is missing.
            let _ = self.write(&format!("events/{name}/filter"), filter);
        }
        self.write(&format!("events/{name}/enable"), "1")
    }

    /// Opens the file from which the records of a processor are read, for each processor.
    ///
    /// # Errors
    /// Fails with the kernel's error.
    pub fn pipes(&self) -> io::Result<Vec<Pipe>> {
        let folders = fs::read_dir(self.path.join("per_cpu"))?;
        let pipes = folders.map(|folder| {
            let folder = folder?.path();
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            Ok(Pipe {
                records: options.open(folder.join("trace_pipe_raw"))?,
                stats: File::open(folder.join("stats"))?,
            })
        });
        pipes.collect()
    }

    /// Returns what outlives this process if it is killed.
    pub fn left(&self) -> Left<'_> {
        Left::Instance {
            control: self.named.control(),
            instances: self.instances.as_fd(),
            name: &self.named.group,
        }
    }

    /// Reads a short file of tracefs itself, at once: some have nothing more for a second read.
    ///
    /// # Errors
    /// Fails with the kernel's error.
    pub fn read(&self, file: &str) -> io::Result<String> {
        let mut bytes = vec![0; SHORT];
        let length = File::open(self.named.root.join(file))?.read(&mut bytes)?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(self.path.join(file))?;
        file.write_all(format!("{value}\n").as_bytes())
    }
}

/// The files of a processor.
pub struct Pipe {
    /// Pages of records.
    pub records: File,
    /// Counts, among them those of dropped records.
    pub stats: File,
}

impl Attach for Arc<Instance> {
    fn attach(&self, place: Place, file: &CStr, offset: u64) -> io::Result<Attachments> {
        let (arguments, filter) = match place.program {
            Program::IoctlArgument(_) => (IOCTL, OUR_IOCTLS.to_str().ok()),
            _ => (REGISTERS, None),
        };
        let (number, definition) = self.named.define(file, offset, arguments)?;
        self.places.add([number], place);
        let name = definition.name.clone();
        let attachment = Attachment {
            instance: Arc::clone(self),
            definition: Some(definition),
        };
        self.filter_and_enable(&name, filter)?;
        Ok(vec![Box::new(attachment)])
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let Some(definition) = self.definition.take() else {
            return;
        };
        let disabled = self.instance.write(&format!("events/{}/enable", definition.name), "0");
        if let Err(error) = disabled {
            log::debug!("the uprobe {} stays enabled: {error}", definition.name);
        }
        let mut detached = self.instance.detached.lock().unwrap_or_else(PoisonError::into_inner);
        detached.push(definition);
    }
}

impl Drop for Instance {
    /// Removes the instance. The definitions, which it used, come after that.
    fn drop(&mut self) {
        if let Err(error) = remove_instance(&self.instances, &self.named.group) {
            log::debug!("the instance {} stays in tracefs: {error}", self.named.group);
        }
    }
}

/// Creates an instance, and removes it.
///
/// # Errors
/// Fails like [`Instance::create`].
pub fn try_to_create() -> Result<(), CaptureError> {
    Instance::create(0).map(drop)
}

fn failed(what: &str, error: &io::Error) -> CaptureError {
    CaptureError::system("using tracefs", io::Error::other(format!("{what}: {error}")))
}
