//! Places of probes, and what a sample there means.

use std::{
    collections::HashMap,
    ffi::CStr,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tracer_core::event::RingStep;

/// When the argument of an ioctl was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentOf {
    /// Before the kernel was entered.
    Entry,
    /// After the kernel returned.
    Exit,
}

/// What a sample of an event means: mostly the counterparts of the eBPF programs of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A doorbell function of a queue.
    Doorbell,
    /// An exported function that stores to a signal, which may be a doorbell.
    DoorbellBySignal,
    /// The function that the runtime calls around changes of its list of code objects.
    CodeObject,
    /// The entry of an ioctl.
    IoctlEnter,
    /// The exit of an ioctl.
    IoctlExit,
    /// The argument of an ioctl, where the C library calls the kernel.
    IoctlArgument(ArgumentOf),
    /// A step of a job on a ring of the kernel driver.
    Ring(RingStep),
}

impl Program {
    /// Returns the program of a uprobe by its name; `None` if only eBPF can do its work.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "doorbell" => Some(Self::Doorbell),
            "doorbell_by_signal" => Some(Self::DoorbellBySignal),
            "code_object" => Some(Self::CodeObject),
            "ioctl_argument_in" => Some(Self::IoctlArgument(ArgumentOf::Entry)),
            "ioctl_argument_out" => Some(Self::IoctlArgument(ArgumentOf::Exit)),
            _ => None,
        }
    }
}

/// A place of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// What a sample means.
    pub program: Program,
    /// The upper half of the cookie: what must be known about the site of a uprobe.
    pub displacement: i32,
}

/// An attached probe; dropping its parts detaches it.
pub type Attachments = Vec<Box<dyn Send>>;

/// Attaches probes that write samples.
pub trait Attach: Send + Sync {
    /// Attaches a probe for every process that maps the file.
    ///
    /// # Errors
    /// Fails with the kernel's error; nothing is attached then.
    fn attach(&self, place: Place, file: &CStr, offset: u64) -> io::Result<Attachments>;
}

/// The places of all events, by the numbers of their events. The thread that attaches probes adds them, and the thread that reads
/// samples looks them up. Numbers are never used again.
#[derive(Default)]
pub struct Places(Mutex<Arc<HashMap<u64, Place>>>);

impl Places {
    /// Returns the places, for one pass over the buffers.
    pub fn get(&self) -> Arc<HashMap<u64, Place>> {
        Arc::clone(&self.locked())
    }

    /// Adds places by the numbers of their events, before these write samples.
    pub fn add(&self, numbers: impl IntoIterator<Item = u64>, place: Place) {
        Arc::make_mut(&mut self.locked()).extend(numbers.into_iter().map(|number| (number, place)));
    }

    fn locked(&self) -> MutexGuard<'_, Arc<HashMap<u64, Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
