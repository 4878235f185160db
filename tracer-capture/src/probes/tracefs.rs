//! Format files of trace events: the offset of a field is read, never assumed. Also their numbers.

use std::{fs, io, path::Path};

use tracer_core::trace_format::TraceFormat;

use crate::CaptureError;

/// The possible mount points of tracefs.
pub const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The fields of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    event: String,
    format: TraceFormat,
}

impl Format {
    /// Reads an event's format.
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] if this kernel does not have the event.
    pub fn read(group: &str, event: &str) -> Result<Self, CaptureError> {
        let text = read(group, event, "format")?;
        Self::parse(&format!("{group}:{event}"), &text)
    }

    /// Returns the fields that the text of a format file declares; `event` is its name in errors.
    ///
    /// # Errors
    /// Fails with [`CaptureError::BadFormat`] for a text that is cut short, or that declares a field in an unknown form.
    pub fn parse(event: &str, text: &str) -> Result<Self, CaptureError> {
        let format = TraceFormat::parse(text).map_err(|what| CaptureError::BadFormat {
            event: event.to_owned(),
            what,
        })?;
        let event = event.to_owned();
        Ok(Self { event, format })
    }

    /// Returns the offset of a field, if it exists with this size.
    #[must_use]
    pub fn offset(&self, name: &str, size: u32) -> Option<u32> {
        self.format.offset(name, size)
    }

    /// Returns the offset of a field that gives the place of a string of variable length, if it exists.
    #[must_use]
    pub fn string(&self, name: &str) -> Option<u32> {
        self.format.string(name)
    }

    /// Returns the same as [`Self::string`], for a field that must exist.
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] and the name of the field.
    pub fn require_string(&self, name: &str) -> Result<u32, CaptureError> {
        let lacking = || CaptureError::NoEvent(format!("{} with a string {name}", self.event));
        self.string(name).ok_or_else(lacking)
    }

    /// Returns the offset of a field that must exist.
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] and the name of the field.
    pub fn require(&self, name: &str, size: u32) -> Result<u32, CaptureError> {
        let lacking = || CaptureError::NoEvent(format!("{} with a field {name} of {size} bytes", self.event));
        self.offset(name, size).ok_or_else(lacking)
    }
}

/// Reads a file of an event.
fn read(group: &str, event: &str, file: &str) -> Result<String, CaptureError> {
    let path = |root: &&str| Path::new(root).join("events").join(group).join(event).join(file);
    let text = ROOTS.iter().find_map(|root| fs::read_to_string(path(root)).ok());
    text.ok_or_else(|| CaptureError::NoEvent(format!("{group}:{event}")))
}

/// Reads the number of a trace event, by which perf events name it.
///
/// # Errors
/// Fails with [`CaptureError::NoEvent`] if this kernel does not have the event.
pub fn number(group: &str, event: &str) -> Result<u64, CaptureError> {
    let text = read(group, event, "id")?;
    let wrong = |error| CaptureError::system("reading the number of a trace event", io::Error::other(error));
    text.trim().parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_and_size() {
        let text = "name: task_newtask\nID: 205\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\
            \tfield:u64 clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"pid=%d\", REC->pid\n";
        let format = Format::parse("task:task_newtask", text).unwrap();
        assert_eq!(format.offset("pid", 4), Some(8));
        assert_eq!(format.offset("comm", 16), Some(12));
        assert_eq!(format.offset("clone_flags", 4), None);
        let error = format.require("clone_flags", 4).unwrap_err().to_string();
        assert!(error.contains("task:task_newtask with a field clone_flags"), "{error}");
    }
}
