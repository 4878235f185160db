//! Probes: one event per processor for each place.

use std::{ffi::CStr, io, os::fd::OwnedFd};

use super::event;
use crate::{
    kernel::uprobe_events::{Definition, Named},
    samples::{Attach, Attachments, Place, Places, Program},
};

/// Attaches probes.
pub struct Probes {
    /// Each processor, and the event whose buffer its other events share.
    processors: Vec<(u32, OwnedFd)>,
    /// What the events mean.
    pub places: Places,
    /// Defines uprobes by name; `None` if only the uprobe PMU can be used.
    named: Option<Named>,
}

/// An attached probe. Dropping it detaches.
struct Attachment {
    _events: Vec<OwnedFd>,
    /// Comes after the events.
    _definition: Definition,
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
            places: Places::default(),
            named,
        })
    }

    /// Returns the definitions that would outlive this process if it were killed.
    pub fn named(&self) -> Option<&Named> {
        self.named.as_ref()
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
        self.places.add(numbers, place);
        opened.iter().try_for_each(event::enable)?;
        Ok(opened)
    }
}

impl Attach for Probes {
    fn attach(&self, place: Place, file: &CStr, offset: u64) -> io::Result<Attachments> {
        let Some(named) = &self.named else {
            let events = self.open(&event::uprobe(file, offset)?, place)?;
            return Ok(events.into_iter().map(|event| Box::new(event) as _).collect());
        };
        let (event, definition) = named.define(file, offset, "")?;
        Ok(vec![Box::new(Attachment {
            _events: self.open(&event::named_uprobe(event), place)?,
            _definition: definition,
        })])
    }
}
