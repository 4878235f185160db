//! The HIP runtime: loaded, initialised, with a GPU chosen.

use std::ffi::{CStr, c_int};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use super::calls::{About, Calls};
use super::ffi::Api;
use super::types::{DEVICE_PROPERTIES_BYTES, Object, SUCCESS, Status};
use crate::error::{Error, Result};

/// Names of the library, the newest release first.
const LIBRARIES: [&str; 4] = [
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
];

/// The length of the GPU's name at the start of its properties, in characters.
const NAME_BYTES: usize = 256;

/// An initialised runtime.
pub struct Runtime {
    pub(super) api: Api,
    pub(super) calls: Calls,
    /// The marketing name of the GPU.
    pub name: String,
    /// The GPU's instruction set, such as gfx942.
    pub gfx: String,
    /// The version that HIP reports: major * 10 000 000 + minor * 100 000 + patch.
    pub version: i32,
    /// The name by which the library was loaded.
    pub library: PathBuf,
}

impl Runtime {
    /// Loads `library`, or the installed one, and chooses GPU number `device`.
    ///
    /// # Errors
    /// Fails if there is no runtime, or no such GPU.
    pub fn start(library: Option<&Path>, device: usize) -> Result<Arc<Self>> {
        let (api, library) = load(library)?;
        let mut runtime = Self {
            api,
            calls: Calls::default(),
            name: String::new(),
            gfx: String::new(),
            version: 0,
            library,
        };
        // SAFETY: hipInit may be called at any time.
        runtime.call("hipInit", About::default(), |api| unsafe { (api.hipInit)(0) })?;
        let mut count: c_int = 0;
        runtime.call("hipGetDeviceCount", About::default(), |api| {
            // SAFETY: `count` is writable.
            unsafe { (api.hipGetDeviceCount)(&raw mut count) }
        })?;
        let found = usize::try_from(count).unwrap_or(0);
        let number = c_int::try_from(device).ok().filter(|_| device < found);
        let number = number.ok_or(Error::NoGpu { wanted: device, found })?;
        runtime.call("hipSetDevice", About::default(), |api| {
            // SAFETY: the number is less than the count.
            unsafe { (api.hipSetDevice)(number) }
        })?;
        let mut version: c_int = 0;
        runtime.call("hipRuntimeGetVersion", About::default(), |api| {
            // SAFETY: `version` is writable.
            unsafe { (api.hipRuntimeGetVersion)(&raw mut version) }
        })?;
        runtime.version = version;
        let mut properties = vec![0_u8; DEVICE_PROPERTIES_BYTES];
        runtime.call("hipGetDeviceProperties", About::default(), |api| {
            // SAFETY: the buffer has room for the properties of any release.
            unsafe { (api.hipGetDeviceProperties)(properties.as_mut_ptr().cast(), number) }
        })?;
        let (name, gfx) = describe(&properties)
            .ok_or_else(|| Error::Unexpected("HIP does not tell the GPU's instruction set".to_owned()))?;
        (runtime.name, runtime.gfx) = (name, gfx);
        Ok(Arc::new(runtime))
    }

    /// Makes a call and logs it.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub(super) fn call(&self, name: &'static str, about: About, call: impl FnOnce(&Api) -> Status) -> Result<()> {
        let status = self.calls.make(name, about, || (call(&self.api), None));
        self.check(name, status)
    }

    /// Makes a call that creates an object, and logs it.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub(super) fn create(
        &self,
        name: &'static str,
        about: About,
        call: impl FnOnce(&Api, *mut Object) -> Status,
    ) -> Result<Object> {
        let mut object = ptr::null_mut();
        let status = self
            .calls
            .make(name, about, || (call(&self.api, &raw mut object), Some(object)));
        self.check(name, status)?;
        Ok(object)
    }

    /// Turns the status that `call` returned into a result.
    ///
    /// # Errors
    /// Fails if the status is not success.
    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function returns a constant C string, or null, for any number.
        let text = unsafe { (self.api.hipGetErrorString)(status) };
        let text = if text.is_null() {
            "unknown error".into()
        } else {
            // SAFETY: as above.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(Error::Hip { call, status, text })
    }

    /// Waits for all work on the GPU.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.call("hipDeviceSynchronize", About::default(), |api| {
            // SAFETY: hipDeviceSynchronize may be called at any time.
            unsafe { (api.hipDeviceSynchronize)() }
        })
    }
}

/// Loads the library of that name, or the first one that exists.
fn load(library: Option<&Path>) -> Result<(Api, PathBuf)> {
    let names: Vec<PathBuf> = match library {
        Some(library) => vec![library.to_owned()],
        None => LIBRARIES.map(PathBuf::from).into(),
    };
    let mut failure = None;
    for name in names {
        match Api::load(&name) {
            Ok(api) => return Ok((api, name)),
            // The error names the most recent library.
            Err(source) => failure = failure.or(Some(Error::HipLibrary { library: name, source })),
        }
    }
    Err(failure.unwrap_or_else(|| Error::Unexpected("no library to load".to_owned())))
}

/// Returns name and instruction set from `hipDeviceProp_t`. Its layout differs between releases: the name is the first field, and
/// `gcnArchName` is the only field that begins with "gfx".
fn describe(properties: &[u8]) -> Option<(String, String)> {
    let text = |bytes: &[u8]| {
        let text = CStr::from_bytes_until_nul(bytes).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    let (name, rest) = properties.split_at_checked(NAME_BYTES)?;
    let at = rest.windows(3).position(|window| window == b"gfx")?;
    let full = text(&rest[at..])?;
    let gfx = full.split(':').next().unwrap_or(&full).to_owned();
    Some((text(name)?, gfx))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instruction_set_is_found_wherever_it_lies() {
        let mut properties = vec![0; DEVICE_PROPERTIES_BYTES];
        properties[..10].copy_from_slice(b"AMD gfx GPU"[..10].try_into().unwrap());
        assert_eq!(describe(&properties), None);
        properties[1160..1178].copy_from_slice(b"gfx942:sramecc+:xn");
        assert_eq!(
            describe(&properties),
            Some(("AMD gfx GP".to_owned(), "gfx942".to_owned()))
        );
    }

    #[test]
    fn the_error_for_a_missing_runtime_names_the_fix() {
        let Err(error) = Runtime::start(Some(Path::new("/nonexistent/libamdhip64.so.7")), 0) else {
            panic!("there is no such file");
        };
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("--library"), "{error}");
    }
}
