//! The eBPF objects that this crate carries.

use crate::error::CaptureError;

/// An eBPF object, selected by what its programs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Programs that only capture.
    Plain,
    /// The same programs, which also report their decisions through aya-log: for `-vv`.
    Diagnostic,
}

#[cfg(has_ebpf_object)]
static PLAIN: Option<&[u8]> = Some(aya::include_bytes_aligned!(env!("TRACER_EBPF_OBJECT_PATH")));
#[cfg(not(has_ebpf_object))]
static PLAIN: Option<&[u8]> = None;

#[cfg(has_ebpf_log_object)]
static DIAGNOSTIC: Option<&[u8]> = Some(aya::include_bytes_aligned!(env!("TRACER_EBPF_LOG_OBJECT_PATH")));
#[cfg(not(has_ebpf_log_object))]
static DIAGNOSTIC: Option<&[u8]> = None;

impl Object {
    /// Returns the object's bytes.
    ///
    /// # Errors
    /// Returns [`CaptureError::NoObject`] if the crate was built without it.
    pub fn bytes(self) -> Result<&'static [u8], CaptureError> {
        match self {
            Self::Plain => PLAIN,
            Self::Diagnostic => DIAGNOSTIC,
        }
        .ok_or(CaptureError::NoObject)
    }
}
