//! Probes: one event per processor for each place.

use std::{
    collections::HashMap,
    ffi::CStr,
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tracer_core::event::RingStep;

use super::event;
use crate::kernel::uprobe_events::{Definition, Named};

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

/// The places of all events, by the numbers of their events. The thread that attaches probes adds them, and the thread that reads
/// samples looks them up. Numbers are never used again.
pub type Places = HashMap<u64, Place>;

/// Attaches probes.
pub struct Probes {
    /// Each processor, and the event whose buffer its other events share.
    processors: Vec<(u32, OwnedFd)>,
    places: Mutex<Arc<Places>>,
    /// Defines uprobes by name; `None` if only the uprobe PMU can be used.
    named: Option<Named>,
}

/// An attached probe, or the part of it on one processor. Dropping it detaches.
pub struct Attachment {
    _events: Vec<OwnedFd>,
    /// Comes after the events.
    _definition: Option<Definition>,
}

impl Probes {
    /// Prepares probes for these processors, each with the event whose buffer is read. The calling thread must see tracefs for
    /// uprobes to be defined there.
    ///
    /// # Errors
    /// Fails if neither the uprobe PMU nor tracefs can be used.
    pub fn new(processors: Vec<(u32, OwnedFd)>) -> io::Result<Self> {
        let named = match Named::open() {
            Err(error) if !event::has_uprobe_pmu() => return Err(error),
            named => named.ok(),
        };
        Ok(Self {
            processors,
            places: Mutex::default(),
            named,
        })
    }

    /// Returns the places, for one pass over the buffers.
    pub fn places(&self) -> Arc<Places> {
        Arc::clone(&self.locked())
    }

    fn locked(&self) -> MutexGuard<'_, Arc<Places>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the definitions that would outlive this process if it were killed.
    pub fn named(&self) -> Option<&Named> {
        self.named.as_ref()
    }

    /// Attaches a probe for every process that maps the file.
    ///
    /// # Errors
    /// Fails with the kernel's error; nothing is attached then.
    pub fn attach(&self, place: Place, file: &CStr, offset: u64) -> io::Result<Vec<Attachment>> {
        let Some(named) = &self.named else {
            let events = self.open(&event::uprobe(file, offset)?, place)?;
            let attachments = events.into_iter().map(|event| Attachment {
                _events: vec![event],
                _definition: None,
            });
            return Ok(attachments.collect());
        };
        let (event, definition) = named.define(file, offset)?;
        Ok(vec![Attachment {
            _events: self.open(&event::named_uprobe(event), place)?,
            _definition: Some(definition),
        }])
    }

    /// Opens a trace event on every processor.
    ///
    /// # Errors
    /// Fails with the kernel's error; no event is open then.
    pub fn trace_event(&self, attributes: &event::Attributes, program: Program) -> io::Result<Vec<OwnedFd>> {
        let displacement = 0;
        self.open(attributes, Place { program, displacement })
    }

    fn open(&self, attributes: &event::Attributes, place: Place) -> io::Result<Vec<OwnedFd>> {
        let opened = self.processors.iter().map(|(processor, buffer)| {
            let opened = event::open(attributes, *processor)?;
            event::share_buffer(&opened, buffer)?;
            Ok(opened)
        });
        let opened: Vec<OwnedFd> = opened.collect::<io::Result<_>>()?;
        let numbers: Vec<u64> = opened.iter().map(event::id).collect::<io::Result<_>>()?;
        // Before they write samples.
        Arc::make_mut(&mut self.locked()).extend(numbers.into_iter().map(|number| (number, place)));
        opened.iter().try_for_each(event::enable)?;
        Ok(opened)
    }
}
