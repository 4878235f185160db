//! Processes that use the KFD, and their current user queues: `/sys/class/kfd/kfd/proc`, which does not need debugfs.
//!
//! Source: `kfd_procfs_add_queue` and `kfd_create_process_sysfs` of drivers/gpu/drm/amd/amdkfd/kfd_process.c:
//! `PID/queues/ID/{gpuid,size,type}`, each a number. In Linux 7 a process may have more than one context; the further ones are in
//! `PID/context_N`. Process ids are those of the initial pid namespace.

use std::io;

use serde::Serialize;

use crate::{kernel::btf::Btf, target::file_tree::Tree};

/// Path of the folder; /sys/class/kfd/kfd links to its parent.
const FOLDER: &str = "sys/devices/virtual/kfd/kfd/proc";

/// A process that has the KFD open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Its queues, by context and id.
    pub queues: Vec<Queue>,
}

/// A user queue. A field is `None` if its file does not give the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// KFD queue id, unique in its context.
    pub queue_id: u32,
    /// Number of the context; `None` for the process's first one, which is the only one in kernels before 7.
    pub context: Option<u32>,
    /// KFD gpu id.
    pub gpu_id: Option<u32>,
    /// The driver's own type, `enum kfd_queue_type`; not the number that CREATE_QUEUE takes.
    pub type_number: Option<u32>,
    /// `compute` (AQL or PM4: the driver's type does not distinguish them), `sdma`, `sdma-xgmi`, `sdma-by-engine`, `hiq`, `diq`;
    /// `None` for an unknown number, or one that means different types in different kernels when nothing shows which kernel this
    /// is.
    pub kind: Option<&'static str>,
    /// Bytes of the ring.
    pub ring_bytes: Option<u64>,
}

/// The driver's numbering of queue types. Its enumeration lost a member (`KFD_QUEUE_TYPE_DIQ`) between Linux 6.18 and 7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// kfd_priv.h of 6.1 and 6.12, confirmed by their BTF: compute, sdma, hiq, diq, sdma-xgmi; and sdma-by-engine, where it exists.
    WithDiq,
    /// kfd_priv.h of 7.2, confirmed by its BTF: compute, sdma, hiq, sdma-xgmi, sdma-by-engine.
    WithoutDiq,
    /// Not known which.
    Unknown,
}

impl Numbering {
    /// Returns the numbering of the running kernel's driver, by its BTF.
    #[must_use]
    pub fn of_kernel() -> Self {
        let btf = Btf::of_kernel(&["amdgpu"]);
        match btf.and_then(|btf| btf.enumerator("kfd_queue_type", "KFD_QUEUE_TYPE_SDMA_XGMI")) {
            Some(4) => Self::WithDiq,
            Some(3) => Self::WithoutDiq,
            _ => Self::Unknown,
        }
    }

    /// Returns the name of a type.
    #[must_use]
    pub const fn name(self, number: u32) -> Option<&'static str> {
        Some(match (number, self) {
            (0, _) => "compute",
            (1, _) => "sdma",
            (2, _) => "hiq",
            (3, Self::WithDiq) => "diq",
            (3, Self::WithoutDiq) | (4, Self::WithDiq) => "sdma-xgmi",
            (4, Self::WithoutDiq) | (5, Self::WithDiq) => "sdma-by-engine",
            _ => return None,
        })
    }
}

/// Returns the processes below a root directory, in the order of their ids.
///
/// Queues come and go during the read. For a queue that goes, the result contains the values that could still be read.
///
/// # Errors
/// Returns the error of reading the folder: `NotFound` if the driver is not loaded.
pub fn below<T: Tree + ?Sized>(root: &T, numbering: Numbering) -> io::Result<Vec<Process>> {
    // Distinguishes a missing folder from one without processes.
    root.names(FOLDER)?;
    let process = |(pid, _): (u32, String)| Process {
        pid,
        queues: queues_of(root, pid, numbering),
    };
    Ok(root.numbered(FOLDER, "").into_iter().map(process).collect())
}

/// Returns the queues of one process, as [`below`]; none if it has not opened the device.
pub fn queues_of<T: Tree + ?Sized>(root: &T, pid: u32, numbering: Numbering) -> Vec<Queue> {
    let path = format!("{FOLDER}/{pid}");
    let mut all = queues(root, &path, None, numbering);
    for (context, path) in root.numbered(&path, "context_") {
        all.extend(queues(root, &path, Some(context), numbering));
    }
    all
}

fn queues<T: Tree + ?Sized>(root: &T, path: &str, context: Option<u32>, numbering: Numbering) -> Vec<Queue> {
    let queue = |(queue_id, path): (u32, String)| {
        // A file that contains a decimal number, with or without a newline.
        let number = |file: &str| root.text(&format!("{path}/{file}"))?.trim().parse::<u64>().ok();
        let short = |file: &str| u32::try_from(number(file)?).ok();
        let type_number = short("type");
        Queue {
            queue_id,
            context,
            gpu_id: short("gpuid"),
            type_number,
            kind: type_number.and_then(|number| numbering.name(number)),
            ring_bytes: number("size"),
        }
    };
    let queues = root.numbered(&format!("{path}/queues"), "").into_iter();
    queues.map(queue).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// Writes a queue's files below a root.
    fn queue(root: &Path, place: &str, files: &[(&str, &str)]) {
        let folder = root.join(FOLDER).join(place);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn queues_are_read_with_what_their_files_tell() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        queue(
            root,
            "812/queues/0",
            &[("gpuid", "51966"), ("type", "0"), ("size", "16384")],
        );
        queue(
            root,
            "812/queues/10",
            &[("gpuid", "51966\n"), ("type", "4\n"), ("size", "1048576\n")],
        );
        queue(root, "812/queues/9", &[("type", "-1"), ("size", "")]);
        queue(
            root,
            "812/context_2/queues/0",
            &[("gpuid", "7"), ("type", "1"), ("size", "4096")],
        );
        queue(root, "77/stats_51966", &[("evicted_ms", "0")]);
        let plain = |queue_id| Queue {
            queue_id,
            context: None,
            gpu_id: Some(51966),
            type_number: Some(0),
            kind: Some("compute"),
            ring_bytes: Some(16384),
        };
        let expected = [
            Process {
                pid: 77,
                queues: vec![],
            },
            Process {
                pid: 812,
                queues: vec![
                    plain(0),
                    Queue {
                        gpu_id: None,
                        type_number: None,
                        kind: None,
                        ring_bytes: None,
                        ..plain(9)
                    },
                    Queue {
                        type_number: Some(4),
                        kind: Some("sdma-xgmi"),
                        ring_bytes: Some(1 << 20),
                        ..plain(10)
                    },
                    Queue {
                        context: Some(2),
                        gpu_id: Some(7),
                        type_number: Some(1),
                        kind: Some("sdma"),
                        ring_bytes: Some(4096),
                        ..plain(0)
                    },
                ],
            },
        ];
        assert_eq!(below(root, Numbering::WithDiq).unwrap(), expected);
    }

    #[test]
    fn a_kernel_without_the_folder_differs_from_one_without_processes() {
        let dir = tempfile::tempdir().unwrap();
        let error = below(dir.path(), Numbering::Unknown).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        fs::create_dir_all(dir.path().join(FOLDER)).unwrap();
        assert_eq!(below(dir.path(), Numbering::Unknown).unwrap(), []);
    }

    /// The BTF of this kernel's driver has the enumeration under the expected names.
    #[test]
    fn the_numbering_of_this_kernel() {
        if !Path::new("/sys/kernel/btf/amdgpu").exists() {
            println!("skipped: amdgpu is not loaded, or without BTF");
            return;
        }
        let numbering = Numbering::of_kernel();
        println!("{numbering:?}");
        assert_ne!(numbering, Numbering::Unknown);
    }

    #[test]
    fn types_are_named_by_the_numbering_and_never_guessed() {
        let names = |numbering: Numbering| [0, 1, 2, 3, 4, 5, 6].map(|n| numbering.name(n));
        let known = [Some("compute"), Some("sdma"), Some("hiq")];
        let [a, b, c] = known;
        let (xgmi, by_engine) = (Some("sdma-xgmi"), Some("sdma-by-engine"));
        assert_eq!(names(Numbering::WithDiq), [a, b, c, Some("diq"), xgmi, by_engine, None]);
        assert_eq!(names(Numbering::WithoutDiq), [a, b, c, xgmi, by_engine, None, None]);
        assert_eq!(names(Numbering::Unknown), [a, b, c, None, None, None, None]);
    }
}
