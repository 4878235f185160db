//! Small text files below a root: the machine's own root, or the root of a process, which a reader reads.

use std::{fs, io, path::Path};

use crate::confined::{Examine, ReadError};

/// Files below a root. Paths have no leading slash.
pub trait Tree {
    /// Returns the names in a folder, in no particular order.
    ///
    /// # Errors
    /// Returns the error of reading the folder: `NotFound` if there is none.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Returns the contents of a file; `None` if it cannot be read, or is not text.
    fn text(&self, file: &str) -> Option<String>;

    /// Returns whether the path exists and is a regular file or a folder: neither a device, nor a FIFO or socket.
    fn is_plain(&self, path: &str) -> bool;

    /// Returns the entries of a folder whose names are a prefix and a number, in the order of the numbers; none if the folder
    /// cannot be read.
    fn numbered(&self, folder: &str, prefix: &str) -> Vec<(u32, String)> {
        let names = self.names(folder).unwrap_or_default().into_iter();
        let number = |name: String| Some((name.strip_prefix(prefix)?.parse().ok()?, format!("{folder}/{name}")));
        let mut all: Vec<(u32, String)> = names.filter_map(number).collect();
        all.sort();
        all
    }
}

/// Files below a path of this process.
impl Tree for Path {
    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.join(folder))?.flatten();
        Ok(entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect())
    }

    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.join(file)).ok()
    }

    fn is_plain(&self, path: &str) -> bool {
        fs::metadata(self.join(path)).is_ok_and(|found| found.is_file() || found.is_dir())
    }
}

/// Files below the root of the examined process.
impl Tree for Examine<'_> {
    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let names = Examine::names(self, folder.as_bytes())?.into_iter();
        Ok(names.filter_map(|name| String::from_utf8(name).ok()).collect())
    }

    fn text(&self, file: &str) -> Option<String> {
        let file = self.in_root(file.as_bytes()).ok()?;
        String::from_utf8(file.start().to_vec()).ok()
    }

    fn is_plain(&self, path: &str) -> bool {
        match self.in_root(path.as_bytes()) {
            Ok(_) => true,
            Err(ReadError::NotRegular) => Examine::names(self, path.as_bytes()).is_ok(),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;
    use crate::confined::{Parsers, Readers};

    /// A reader finds the same files in the root of this process as this process itself.
    #[test]
    fn both_roots_show_the_same() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["nodes/0", "nodes/10", "nodes/9", "nodes/x"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("nodes/9/gpu_id"), "7\n").unwrap();
        mkfifoat(CWD, dir.path().join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
        // SAFETY: the child makes plain calls; other threads of this test program only wait.
        let readers = unsafe { Readers::start() }.unwrap();
        let parsers = Parsers::new(&readers);
        let deadline = Instant::now() + Duration::from_secs(60);
        let examine = Examine::new(&readers, &parsers, std::process::id(), deadline).unwrap();
        let root = dir.path().to_str().unwrap().strip_prefix('/').unwrap();
        check(Path::new("/"), root);
        check(&examine, root);
    }

    fn check<T: Tree + ?Sized>(tree: &T, root: &str) {
        let numbers = tree.numbered(&format!("{root}/nodes"), "").into_iter();
        assert_eq!(numbers.map(|(number, _)| number).collect::<Vec<u32>>(), [0, 9, 10]);
        assert_eq!(tree.text(&format!("{root}/nodes/9/gpu_id")).as_deref(), Some("7\n"));
        assert_eq!(tree.text(&format!("{root}/nodes/0/gpu_id")), None);
        let none = tree.names(&format!("{root}/none"));
        assert_eq!(none.unwrap_err().kind(), io::ErrorKind::NotFound);
        let plain = ["nodes", "nodes/9/gpu_id", "fifo", "none"];
        let plain = plain.map(|name| tree.is_plain(&format!("{root}/{name}")));
        assert_eq!(plain, [true, true, false, false]);
        assert!(!tree.is_plain("dev/null"));
    }
}
