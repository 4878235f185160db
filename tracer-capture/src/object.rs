//! The eBPF object that this crate carries.

use crate::error::CaptureError;

#[cfg(has_ebpf_object)]
static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("TRACER_EBPF_OBJECT_PATH"));

/// The object's bytes.
///
/// # Errors
/// [`CaptureError::NoObject`] if the crate was built without one.
pub fn bytes() -> Result<&'static [u8], CaptureError> {
    #[cfg(has_ebpf_object)]
    return Ok(OBJECT);
    #[cfg(not(has_ebpf_object))]
    Err(CaptureError::NoObject)
}
