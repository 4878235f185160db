//! Cgroups of tests.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// The usual mount points of cgroup v2.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// A cgroup of version 2, and those above it that did not exist. They are removed when it is dropped.
pub struct Cgroup {
    dir: PathBuf,
    /// The folders that were created, from the outside to the inside.
    made: Vec<PathBuf>,
}

impl Cgroup {
    /// Creates a cgroup at this path below the root of the tree.
    ///
    /// # Errors
    /// Returns the reason if no cgroup of version 2 can be created here.
    pub fn new(path: &str) -> Result<Self, String> {
        let mut roots = ROOTS.map(Path::new).into_iter();
        let root = roots.find(|root| root.join("cgroup.procs").exists());
        let mut cgroup = Self {
            dir: root.ok_or("no cgroup v2 is mounted")?.to_owned(),
            made: Vec::new(),
        };
        for name in path.split('/') {
            cgroup.dir.push(name);
            match fs::create_dir(&cgroup.dir) {
                Ok(()) => cgroup.made.push(cgroup.dir.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", cgroup.dir.display())),
            }
        }
        Ok(cgroup)
    }

    /// Returns whether this kernel can kill everything in a cgroup at once.
    #[must_use]
    pub fn has_kill(&self) -> bool {
        self.dir.join("cgroup.kill").exists()
    }

    /// Moves a process into it; 0 is the process that calls.
    ///
    /// # Errors
    /// Returns the error of the write.
    pub fn enter(&self, pid: u32) -> io::Result<()> {
        fs::write(self.procs(), pid.to_string())
    }

    /// Returns the file that processes are moved by.
    #[must_use]
    pub fn procs(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Kills everything in it, at once.
    ///
    /// # Errors
    /// Returns the error of the write.
    pub fn kill(&self) -> io::Result<()> {
        fs::write(self.dir.join("cgroup.kill"), "1")
    }

    /// Returns the ids of its processes, a line each.
    #[must_use]
    pub fn processes(&self) -> String {
        fs::read_to_string(self.procs()).unwrap_or_default()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for dir in self.made.iter().rev() {
            for _ in 0..400 {
                match fs::remove_dir(dir) {
                    // Its last process has not been reaped yet.
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        std::thread::sleep(Duration::from_millis(25));
                    }
                    _ => break,
                }
            }
        }
    }
}
