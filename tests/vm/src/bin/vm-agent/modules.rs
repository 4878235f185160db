//! Loading and unloading of kernel modules.

use std::ffi::CString;
use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::system::{delete_module, finit_module};

/// Loads modules in order. The last one gets the parameters.
pub fn load(files: &[PathBuf], parameters: &str) -> Result<()> {
    for (number, path) in files.iter().enumerate() {
        let parameters = if number + 1 == files.len() { parameters } else { "" };
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        match finit_module(&file, &CString::new(parameters)?, 0) {
            // Another module needed it and has loaded it.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot load {} (dmesg may say more)", path.display()));
            }
        }
    }
    Ok(())
}

/// Unloads a module that is not in use.
pub fn unload(name: &str) -> Result<()> {
    // `O_NONBLOCK`: a module in use is an error, not a reason to wait.
    delete_module(&CString::new(name)?, libc::O_NONBLOCK).with_context(|| format!("cannot unload {name}"))
}
