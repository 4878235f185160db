//! ftrace: the kernel writes records of trace events and of uprobes into the buffers of an instance of tracefs, one per processor.
//!
//! It needs write access to tracefs and nothing else of the kernel: neither eBPF nor perf events. Fetch arguments of the uprobes
//! carry the registers. Those where the C library calls the kernel follow the pointer to an ioctl's argument, so it is what it was
//! at that moment.

mod input;
mod instance;
mod tasks;

use std::sync::Arc;

use tracer_core::event::RingStep;

use crate::{
    CaptureError,
    probes::ring::GROUP,
    samples::{IOCTL_EVENTS, Ioctls, OUR_IOCTLS, Parts, Program, Rings},
    sys,
};
use input::FtraceInput;
use tasks::{EXEC, EXIT, MMAP, NEW, Tasks};

pub use instance::Instance;

/// Returns why ftrace cannot be used here; `None` if it can.
#[must_use]
pub fn why_not() -> Option<String> {
    // A thread of its own: it may need its own mount namespace to see tracefs, which ends with the thread.
    let tried = std::thread::scope(|scope| {
        let tried = scope.spawn(|| {
            sys::ensure_tracefs().map_err(CaptureError::NoTracefs)?;
            Ioctls::read()?;
            Tasks::read()?;
            instance::try_to_create()
        });
        tried.join()
    });
    match tried {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("a panic".to_owned()),
    }
}

/// Enables the events of every process. The calling thread must see tracefs. Returns the source's parts.
///
/// # Errors
/// Fails with the kernel's error, and if it does not have the events.
pub fn open(instance: &Arc<Instance>) -> Result<Parts, CaptureError> {
    let ioctls = Ioctls::read()?;
    let rings = Rings::read();
    let input = Box::new(FtraceInput::open(Arc::clone(instance))?);
    for (group, event, filter) in [NEW, EXEC, EXIT, MMAP] {
        instance.enable(group, event, filter, None)?;
    }
    let ours = OUR_IOCTLS.to_str().ok();
    for (event, filter, program) in [
        (IOCTL_EVENTS[0], ours, Program::IoctlEnter),
        (IOCTL_EVENTS[1], None, Program::IoctlExit),
    ] {
        instance.enable("syscalls", event, filter, Some(program))?;
    }
    let steps: Vec<(&str, RingStep)> = rings.iter().flat_map(Rings::steps).collect();
    for (event, step) in steps {
        instance.enable(GROUP, event, None, Some(Program::Ring(step)))?;
    }
    let ioctls = Some(ioctls);
    Ok(Parts { input, ioctls, rings })
}
