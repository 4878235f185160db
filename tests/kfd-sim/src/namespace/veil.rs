//! The veil: a tmpfs that covers a folder and into which all entries of the folder are bound again, so that entries can be added or
//! left out without any change to the file system below.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::mounts::{bind_recursive, mount_tmpfs};

/// The folders that are covered, or that were created in a covered folder. Entries can be created there.
#[derive(Default)]
pub struct Veils(BTreeSet<PathBuf>);

impl Veils {
    /// Covers a folder with a tmpfs that shows all its entries except those named.
    pub fn cover(&mut self, path: &Path, without: &[&str]) -> Result<()> {
        let below = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(path)
            .with_context(|| format!("open {}", path.display()))?;
        let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
        let old = PathBuf::from(format!("/proc/self/fd/{}", below.as_raw_fd()));
        let entries = fs::read_dir(&old)?.collect::<io::Result<Vec<_>>>()?;
        mount_tmpfs(path, mode)?;
        for entry in entries {
            let name = entry.file_name();
            if without.iter().any(|hidden| name == *hidden) {
                continue;
            }
            let (from, to) = (old.join(&name), path.join(&name));
            if entry.file_type()?.is_symlink() {
                symlink(fs::read_link(&from)?, &to)?;
            } else {
                make_target(&from, &to)?;
                bind_recursive(&from, &to)?;
            }
        }
        self.0.insert(path.to_owned());
        Ok(())
    }

    /// Shows `source` at `target` below `root`, and creates the target if it is missing.
    pub fn share(&mut self, root: &Path, source: &Path, target: &Path) -> Result<()> {
        let mut at = root.to_owned();
        for part in target.strip_prefix("/").unwrap_or(target) {
            let parent = at.clone();
            at.push(part);
            if at.exists() {
                continue;
            }
            if !self.0.contains(&parent) {
                self.cover(&parent, &[])?;
            }
            if at == root.join(target.strip_prefix("/").unwrap_or(target)) {
                make_target(source, &at)?;
            } else {
                fs::create_dir(&at)?;
                self.0.insert(at.clone());
            }
        }
        bind_recursive(source, &at)
    }
}

/// Creates a file or folder to mount `source` on.
fn make_target(source: &Path, target: &Path) -> Result<()> {
    if fs::metadata(source)?.is_dir() {
        fs::create_dir(target)?;
    } else {
        File::create(target)?;
    }
    Ok(())
}
