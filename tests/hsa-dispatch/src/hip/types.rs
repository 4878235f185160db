//! Layouts and constants of the HIP interface (`hip_runtime_api.h`, `hip_ext.h`). They are the same in every release from 5.2 on.

use std::ffi::c_void;

/// `hipError_t`.
pub type Status = u32;
/// `hipSuccess`.
pub const SUCCESS: Status = 0;

/// A stream, event, module, function or graph: an address that only HIP dereferences.
pub type Object = *mut c_void;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    /// The size in the first dimension.
    pub x: u32,
    /// The size in the second dimension.
    pub y: u32,
    /// The size in the third dimension.
    pub z: u32,
}

impl Dim3 {
    /// Returns a size with one dimension.
    #[must_use]
    pub const fn line(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

/// `hipMemcpyKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Direction {
    /// `hipMemcpyHostToDevice`.
    HostToDevice = 1,
    /// `hipMemcpyDeviceToHost`.
    DeviceToHost = 2,
    /// `hipMemcpyDeviceToDevice`.
    DeviceToDevice = 3,
}

impl Direction {
    /// Returns the name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostToDevice => "host-to-device",
            Self::DeviceToHost => "device-to-host",
            Self::DeviceToDevice => "device-to-device",
        }
    }
}

/// `hipStreamNonBlocking`: the stream does not wait for the default one.
pub const STREAM_NON_BLOCKING: u32 = 1;
/// `hipStreamCaptureModeGlobal`.
pub const CAPTURE_GLOBAL: u32 = 0;

/// A size that is large enough for `hipDeviceProp_t` of every release, in bytes.
pub const DEVICE_PROPERTIES_BYTES: usize = 8192;

/// `__HIP_FATBIN_WRAPPER`: the structure by which the compiler registers a fat binary (clang, CGCUDANV.cpp).
#[repr(C)]
#[derive(Debug)]
pub struct FatBinary {
    /// [`FAT_BINARY_MAGIC`].
    pub magic: u32,
    /// Always 1.
    pub version: u32,
    /// An offload bundle.
    pub binary: *const u8,
    /// Always null.
    pub unused: *const c_void,
}

/// "HIPF".
pub const FAT_BINARY_MAGIC: u32 = 0x4849_5046;
