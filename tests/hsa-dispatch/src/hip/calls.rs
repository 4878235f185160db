//! Every HIP call that the program made. An observer must have seen these calls.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Serialize, Serializer};

use super::types::{Direction, Object, Status};
use crate::clock;
use crate::error::{Error, Result};

/// The subject of a call. Fields that do not apply are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// The stream; 0 is the default one.
    #[serde(serialize_with = "hex", skip_serializing_if = "Option::is_none")]
    stream: Option<u64>,
    /// The object that was created, looked up, waited for or released: an event, a graph, memory, ...
    #[serde(serialize_with = "hex", skip_serializing_if = "Option::is_none")]
    object: Option<u64>,
    /// The destination of a copy or fill.
    #[serde(serialize_with = "hex", skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
    /// The source of a copy.
    #[serde(serialize_with = "hex", skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// The number of bytes that are copied, filled or allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// The memories between which a copy is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    /// Name of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'static str>,
    /// The work-items of a launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    grid: Option<[u32; 3]>,
    /// The work-items of its workgroups.
    #[serde(skip_serializing_if = "Option::is_none")]
    workgroup: Option<[u32; 3]>,
    /// The kernels of a graph that is launched.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<u32>,
}

impl About {
    /// Returns the subject of a call on an object.
    #[must_use]
    pub fn object(object: Object) -> Self {
        Self {
            object: Some(object as u64),
            ..Self::default()
        }
    }

    /// Returns the subject of an allocation.
    #[must_use]
    pub fn bytes(bytes: usize) -> Self {
        Self {
            bytes: Some(bytes as u64),
            ..Self::default()
        }
    }

    /// Returns the subject of a copy.
    #[must_use]
    pub fn copy(to: Object, from: Object, bytes: usize, direction: Direction) -> Self {
        Self {
            to: Some(to as u64),
            from: Some(from as u64),
            direction: Some(direction.name()),
            ..Self::bytes(bytes)
        }
    }

    /// Returns the subject of a fill.
    #[must_use]
    pub fn fill(to: Object, bytes: usize) -> Self {
        Self {
            to: Some(to as u64),
            ..Self::bytes(bytes)
        }
    }

    /// Returns the subject of a launch.
    #[must_use]
    pub fn launch(kernel: &'static str, blocks: u32, workgroup: u32) -> Self {
        Self {
            kernel: Some(kernel),
            grid: Some([blocks * workgroup, 1, 1]),
            workgroup: Some([workgroup, 1, 1]),
            ..Self::default()
        }
    }

    /// Adds a stream.
    #[must_use]
    pub fn on(mut self, stream: Object) -> Self {
        self.stream = Some(stream as u64);
        self
    }

    /// Adds the number of kernels of a graph.
    #[must_use]
    pub fn of_kernels(mut self, kernels: u32) -> Self {
        self.kernels = Some(kernels);
        self
    }
}

/// A call.
#[derive(Clone, Copy, Debug, Serialize)]
struct Call {
    call: &'static str,
    tid: i32,
    start_ns: u64,
    end_ns: u64,
    result: Status,
    #[serde(flatten)]
    about: About,
}

/// The calls of all threads, in the order in which they returned.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Vec<Call>>);

impl Calls {
    /// Makes a call and records it. `call` also returns what the call created.
    pub fn make(
        &self,
        name: &'static str,
        mut about: About,
        call: impl FnOnce() -> (Status, Option<Object>),
    ) -> Status {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let start_ns = clock::now();
        let (result, created) = call();
        let end_ns = clock::now();
        about.object = about.object.or(created.map(|object| object as u64));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Call {
            call: name,
            tid,
            start_ns,
            end_ns,
            result,
            about,
        });
        result
    }

    /// Returns the number of calls that have returned.
    pub fn returned(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Writes the calls to `path`, one JSON line each.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let failed = |source: std::io::Error| Error::File {
            path: path.to_owned(),
            source,
        };
        let mut file = BufWriter::new(File::create(path).map_err(failed)?);
        for call in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            serde_json::to_writer(&mut file, call).map_err(|error| failed(error.into()))?;
            file.write_all(b"\n").map_err(failed)?;
        }
        file.flush().map_err(failed)
    }
}

/// Formats an address as text, because JSON numbers lose their low bits in many readers.
#[expect(clippy::ref_option, reason = "serde gives the field by reference")]
fn hex<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.serialize_str(&format!("{value:#x}")),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_tells_what_applies() {
        let calls = Calls::default();
        let about = About::launch("fill", 2, 64).on(std::ptr::null_mut());
        assert_eq!(calls.make("hipLaunchKernel", about, || (7, None)), 7);
        calls.make("hipMalloc", About::bytes(16), || {
            (0, Some(std::ptr::without_provenance_mut(0x40)))
        });
        let calls = calls.0.into_inner().unwrap();
        let json = |call: &Call| serde_json::to_value(call).unwrap();
        let (launch, malloc) = (json(&calls[0]), json(&calls[1]));
        assert_eq!((&launch["result"], &launch["kernel"]), (&7.into(), &"fill".into()));
        assert_eq!(launch["grid"], serde_json::json!([128, 1, 1]));
        assert_eq!(launch["stream"], "0x0");
        assert!(launch.get("bytes").is_none());
        assert_eq!((&malloc["object"], &malloc["bytes"]), (&"0x40".into(), &16.into()));
        assert!(calls[0].start_ns <= calls[0].end_ns && calls[0].end_ns <= calls[1].start_ns);
    }
}
