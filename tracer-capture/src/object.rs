//! The eBPF objects that this crate carries.

use crate::error::CaptureError;

/// Which programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Those that only capture.
    Plain,
    /// The same, which also say what they decide, through aya-log: for `-vv`.
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
    /// The object's bytes.
    ///
    /// # Errors
    /// [`CaptureError::NoObject`] if the crate was built without it.
    pub fn bytes(self) -> Result<&'static [u8], CaptureError> {
        match self {
            Self::Plain => PLAIN,
            Self::Diagnostic => DIAGNOSTIC,
        }
        .ok_or(CaptureError::NoObject)
    }
}
