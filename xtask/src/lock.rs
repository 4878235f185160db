//! One lock for everything that changes the cache.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use anyhow::{Context, Result};

/// Waits until no other xtask changes the cache at `cache`. The lock lasts until the file is dropped.
pub fn acquire(cache: &Path) -> Result<File> {
    fs::create_dir_all(cache).with_context(|| {
        format!(
            "cannot create {}: point TRACER_CACHE to a writable folder",
            cache.display()
        )
    })?;
    let path = cache.join("lock");
    let file = File::create(&path).with_context(|| {
        format!(
            "cannot write {}: point TRACER_CACHE to a writable folder",
            path.display()
        )
    })?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("==> waiting for another xtask to finish with {}", cache.display());
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    Ok(file)
}
