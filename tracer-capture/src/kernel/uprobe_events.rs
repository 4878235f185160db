//! Uprobes that are defined by name in tracefs, to be opened as trace events.
//!
//! One definition serves the events of all processors, and a hit is sampled once. With the uprobe PMU each processor's event is a
//! uprobe of its own: a thread that moves to another processor between two of them is sampled twice, or not at all.
//!
//! Since Linux 6.16, and in the stable releases of its time, the uprobe PMU demands CAP_SYS_ADMIN, whatever CAP_PERFMON permits.
//! A file in tracefs takes definitions from every process that may write to it.
//!
//! A definition outlives its process; the probe itself does not. The guardians remove the definitions of a recorder that is killed.

use std::{
    ffi::CStr,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rustix::fs::{AtFlags, unlinkat};

use crate::{probes::tracefs::ROOTS, target::process_stat};

/// The file that takes definitions (Documentation/trace/uprobetracer.rst).
const CONTROL: &str = "uprobe_events";
/// The folder of instances.
pub const INSTANCES: &str = "instances";
/// Start of the names of the groups, before the recorder's process id.
const GROUP: &str = "tracer_";

/// Whether this process has definitions: what has its name is not left over then.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// The definitions of this recorder.
pub struct Named {
    /// tracefs, which may be mounted for the thread that opened it only.
    _tracefs: File,
    /// The path at which every thread of this process reaches it.
    pub root: PathBuf,
    control: Arc<File>,
    /// The group of this recorder's definitions; its instance of tracefs has the same name.
    pub group: String,
    next: AtomicU64,
}

/// A definition. Dropping it removes it, which the kernel permits once its events
/// are closed or disabled.
pub struct Definition {
    control: Arc<File>,
    /// Its group, and its event in it: `GROUP/EVENT`.
    pub name: String,
}

impl Named {
    /// Opens tracefs, which the calling thread must see. Removes the instances and definitions of recorders that are gone.
    ///
    /// # Errors
    /// Fails if tracefs is not mounted, or if this process may not write to it.
    pub fn open() -> io::Result<Self> {
        let (tracefs, control) = opened()?;
        let named = Self {
            root: format!("/proc/self/fd/{}", tracefs.as_raw_fd()).into(),
            _tracefs: tracefs,
            control: Arc::new(control),
            group: format!("{GROUP}{}", std::process::id()),
            next: AtomicU64::new(0),
        };
        if !IS_OPEN.swap(true, Ordering::AcqRel) {
            named.remove_left();
        }
        Ok(named)
    }

    /// Defines a uprobe at an offset of a file, whose records have these fetch arguments. Returns the number of its trace event.
    ///
    /// # Errors
    /// Fails with the kernel's error.
    pub fn define(&self, file: &CStr, offset: u64, arguments: &str) -> io::Result<(u64, Definition)> {
        let event = format!("u{}", self.next.fetch_add(1, Ordering::Relaxed));
        let name = format!("{}/{event}", self.group);
        write(
            &self.control,
            &format!("p:{name} {}:{offset:#x} {arguments}", file.to_string_lossy()),
        )?;
        let definition = Definition {
            control: Arc::clone(&self.control),
            name,
        };
        let id = self.root.join("events").join(&self.group).join(event).join("id");
        let number = fs::read_to_string(id)?.trim().parse().map_err(io::Error::other)?;
        Ok((number, definition))
    }

    /// Returns the file by whose descriptor [`remove_group`] removes the definitions.
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    fn remove_left(&self) {
        // The definitions of an instance are in use while it exists.
        if let Ok(instances) = File::open(self.root.join(INSTANCES)) {
            for name in left_in(&self.root.join(INSTANCES)) {
                let _ = remove_instance(&instances, &name);
            }
        }
        for group in left_in(&self.root.join("events")) {
            // Another tracer may have removed it.
            let _ = remove_group(&self.control, &group);
        }
    }
}

/// Returns the names in a folder of tracefs that belong to recorders that are gone.
fn left_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| {
            let recorder = name.strip_prefix(GROUP).and_then(|pid| pid.parse().ok());
            // A recorder of this process's id is gone, too.
            recorder.is_some_and(|pid| pid == std::process::id() || !process_stat::is_alive(pid))
        })
        .collect()
}

impl Drop for Named {
    fn drop(&mut self) {
        IS_OPEN.store(false, Ordering::Release);
    }
}

impl Drop for Definition {
    fn drop(&mut self) {
        if let Err(error) = write(&self.control, &format!("-:{}", self.name)) {
            log::debug!("the definition of the uprobe {} stays in tracefs: {error}", self.name);
        }
    }
}

/// Removes all definitions of a group.
///
/// # Errors
/// Fails with the kernel's error: EBUSY while an event of the group is open.
pub fn remove_group(control: &File, group: &str) -> io::Result<()> {
    write(control, &format!("-:{group}/"))
}

/// Removes an instance of tracefs, given by the folder of instances and its name.
///
/// # Errors
/// Fails with the kernel's error: EBUSY while a file of the instance is open.
pub fn remove_instance(instances: &File, name: &str) -> io::Result<()> {
    Ok(unlinkat(instances, name, AtFlags::REMOVEDIR)?)
}

/// Writes a line at once, as the kernel takes it.
fn write(mut control: &File, line: &str) -> io::Result<()> {
    control.write_all(format!("{line}\n").as_bytes())
}

/// Returns whether definitions can be written here.
pub fn is_writable() -> bool {
    opened().is_ok()
}

/// Opens tracefs, and its file that takes definitions.
fn opened() -> io::Result<(File, File)> {
    let open = |root: &Path| {
        Ok((
            File::open(root)?,
            OpenOptions::new().append(true).open(root.join(CONTROL))?,
        ))
    };
    let [first, second] = ROOTS.map(Path::new);
    open(first).or_else(|_| open(second))
}
