//! The HSA runtime: loaded, initialised, and shut down when it has no user any more.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use super::ffi::Api;
use super::types::{Status, status, system_info};
use crate::error::{Error, Result};

/// The name under which every distribution installs the runtime.
const DEFAULT_LIBRARY: &str = "libhsa-runtime64.so.1";

/// An initialised runtime.
pub struct Runtime {
    pub(super) api: Api,
    /// The frequency of the ticks in which timeouts are counted.
    ticks_per_second: u64,
}

impl Runtime {
    /// Loads `library`, or the installed one, and initialises it.
    ///
    /// # Errors
    /// Fails if there is no runtime, or if it finds no usable driver.
    pub fn start(library: Option<&Path>) -> Result<Arc<Self>> {
        let library = library.unwrap_or(Path::new(DEFAULT_LIBRARY));
        let api = Api::load(library).map_err(|source| Error::Library {
            library: library.to_owned(),
            source,
        })?;
        // SAFETY: `hsa_init` may be called at any time.
        let status = unsafe { (api.hsa_init)() };
        if status != status::SUCCESS {
            return Err(Error::Hsa {
                call: "hsa_init",
                status,
                text: status_text(&api, status),
            });
        }
        // From here on, dropping it shuts the runtime down.
        let mut runtime = Self {
            api,
            ticks_per_second: 0,
        };
        runtime.ticks_per_second = runtime.system_info(system_info::TIMESTAMP_FREQUENCY)?;
        Ok(Arc::new(runtime))
    }

    /// Turns the status that `call` returned into a result.
    ///
    /// # Errors
    /// Fails if the status is not success.
    pub fn check(&self, call: &'static str, status: Status) -> Result<()> {
        if status == status::SUCCESS {
            return Ok(());
        }
        Err(Error::Hsa {
            call,
            status,
            text: self.status_text(status),
        })
    }

    /// Returns the runtime's description of a status.
    #[must_use]
    pub fn status_text(&self, status: Status) -> String {
        status_text(&self.api, status)
    }

    /// Returns the version of the interface (for example 1.14), and the build if the runtime reports it.
    ///
    /// # Errors
    /// Fails if the runtime refuses to report the version.
    pub fn version(&self) -> Result<String> {
        let major: u16 = self.system_info(system_info::VERSION_MAJOR)?;
        let minor: u16 = self.system_info(system_info::VERSION_MINOR)?;
        let mut version = format!("{major}.{minor}");
        if let Ok(build) = self.system_info::<*const c_char>(system_info::BUILD_VERSION)
            && !build.is_null()
        {
            // SAFETY: the attribute is a constant C string of the library.
            let build = unsafe { CStr::from_ptr(build) };
            // Some builds include the quotes of their build system.
            version = format!("{version} ({})", build.to_string_lossy().trim_matches('"'));
        }
        Ok(version)
    }

    /// Returns the file that the runtime was loaded from.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: the address is a function's address, and `info` is writable.
        let found = unsafe { libc::dladdr(self.api.hsa_init as *const c_void, info.as_mut_ptr()) };
        // SAFETY: all-zero is a valid `Dl_info`, so it is initialised in any case.
        let info = unsafe { info.assume_init() };
        if found == 0 || info.dli_fname.is_null() {
            return PathBuf::from(DEFAULT_LIBRARY);
        }
        // SAFETY: the dynamic linker's name of a library that stays loaded.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    }

    /// `seconds` in the unit of the runtime's timeouts.
    pub(super) fn ticks(&self, millis: u64) -> u64 {
        self.ticks_per_second.saturating_mul(millis) / 1000
    }

    /// Returns the value of an attribute whose type is `T`.
    fn system_info<T: Copy>(&self, attribute: u32) -> Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: `value` has the attribute's type.
        let status = unsafe { (self.api.hsa_system_get_info)(attribute, value.as_mut_ptr().cast()) };
        self.check("hsa_system_get_info", status)?;
        // SAFETY: the runtime has initialised the value.
        Ok(unsafe { value.assume_init() })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // SAFETY: `start` initialised it. Every object created from it holds a reference, so no such object is left.
        unsafe { (self.api.hsa_shut_down)() };
    }
}

fn status_text(api: &Api, status: Status) -> String {
    let mut text = ptr::null();
    // SAFETY: `text` is writable; unknown statuses are refused.
    let known = unsafe { (api.hsa_status_string)(status, &raw mut text) };
    if known != status::SUCCESS || text.is_null() {
        return "unknown status".to_owned();
    }
    // SAFETY: this is the runtime's own constant string.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().trim_end().to_owned()
}

/// Runs an iteration of the runtime and collects the visited objects.
///
/// `iterate` gets the visitor and its data and returns the runtime's status.
pub(super) fn collect<T: Copy>(
    iterate: impl FnOnce(super::ffi::Visitor<T>, *mut c_void) -> Status,
) -> (Status, Vec<T>) {
    unsafe extern "C" fn push<T: Copy>(item: T, items: *mut c_void) -> Status {
        // SAFETY: `collect` passes its vector, which no other code accesses during the iteration.
        let items = unsafe { &mut *items.cast::<Vec<T>>() };
        items.push(item);
        status::SUCCESS
    }
    let mut items = Vec::new();
    let status = iterate(push::<T>, (&raw mut items).cast());
    (status, items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_missing_runtime_names_the_fix() {
        let Err(error) = Runtime::start(Some(Path::new("/nonexistent/libhsa-runtime64.so.1"))) else {
            panic!("there is no such file");
        };
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("--library"), "{error}");
    }

    #[test]
    fn iterations_are_collected() {
        let (status, items) = collect::<u32>(|visit, data| {
            // SAFETY: visitor and data belong together.
            unsafe { visit(1, data) | visit(2, data) }
        });
        assert_eq!((status, items), (status::SUCCESS, vec![1, 2]));
    }
}
