//! The private mount namespace: device files, sysfs files and, if requested, another root, visible to the client alone.

mod abort;
mod mounts;
mod veil;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use fuser::{Config, Session, SessionACL};

use self::mounts::{bind_recursive, mount_fuse, unmount};
use self::veil::Veils;
use crate::asic::Asic;
use crate::card;
use crate::fs::DeviceFs;
use crate::machine::Machine;
use crate::topology::{self, FIRST_RENDER_MINOR};

/// The folder of the driver's sysfs files.
const KFD_SYSFS: &str = "/sys/devices/virtual/kfd/kfd";

/// The number of threads that answer the kernel: an ioctl may have to wait for a queue's thread.
const FUSE_THREADS: usize = 4;

/// Returns the folder of the driver's per-process files.
pub fn sysfs_proc() -> PathBuf {
    Path::new(KFD_SYSFS).join("proc")
}

/// Leaves the common mount namespace. Must be called while the process has only one thread.
pub fn enter() -> Result<()> {
    // SAFETY: unshare changes only this process's own view of mounts.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error()).context("a private mount namespace (are you root?)");
    }
    mounts::make_private().context("make mounts private")
}

/// Opens the FUSE session and creates the device files in /dev. Returns the folder of the session's files, which has no path.
pub fn make_devices(machine: &Arc<Machine>, passthrough: bool) -> Result<File> {
    let (fs, gpus) = (DeviceFs::new(Arc::clone(machine), passthrough), machine.gpus);
    let mut veils = Veils::default();
    veils.cover(Path::new("/dev"), &["kfd", "dri"])?;
    let staging = Path::new("/dev/.kfd-sim");
    fs::create_dir(staging)?;
    let fuse: OwnedFd = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .context("open /dev/fuse")?
        .into();
    mount_fuse(fuse.as_raw_fd(), staging).context("mount FUSE")?;
    let mut config = Config::default();
    config.acl = SessionACL::All;
    config.n_threads = Some(FUSE_THREADS);
    let session = Session::from_fd(fs, fuse, SessionACL::All, config).context("the FUSE session")?;
    std::thread::Builder::new().name("fuse".into()).spawn(move || {
        if let Err(error) = session.run() {
            log::error!("the FUSE session ended: {error}");
        }
    })?;
    fs::create_dir("/dev/dri")?;
    let render = (0..gpus).map(|gpu| format!("dri/renderD{}", FIRST_RENDER_MINOR as usize + gpu));
    for file in render.chain(["kfd".into()]) {
        let target = Path::new("/dev").join(&file);
        File::create(&target)?;
        bind_recursive(&staging.join(file.trim_start_matches("dri/")), &target)?;
    }
    let mut folder = OpenOptions::new();
    folder.read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY);
    let folder = folder.open(staging).context("the folder of the device files")?;
    unmount(staging)?;
    // The session is open by now, because the files were looked up.
    if machine.passthrough.get() == Some(&false) {
        let open = |path: &str| OpenOptions::new().read(true).write(true).open(path);
        let kfd = open("/dev/kfd")?;
        let render = open(&format!("/dev/dri/renderD{FIRST_RENDER_MINOR}"))?;
        abort::on_exit(&kfd, staging)?;
        machine.doorbells.file().adopt(&kfd).context("map /dev/kfd")?;
        machine.vram.adopt(&render).context("map the render node")?;
    }
    fs::remove_dir(staging)?;
    Ok(folder)
}

/// Creates the driver's files in /sys.
pub fn make_sysfs(asic: &Asic, gpus: usize) -> Result<()> {
    let (devices, class) = (Path::new("/sys/devices"), Path::new("/sys/class"));
    let mut veils = Veils::default();
    let buses: Vec<String> = (0..gpus).map(card::root_bus).collect();
    veils.cover(devices, &buses.iter().map(String::as_str).collect::<Vec<_>>())?;
    veils.cover(Path::new("/sys/devices/virtual"), &["kfd"])?;
    topology::write(Path::new(KFD_SYSFS), asic, gpus)?;
    veils.cover(class, &["kfd", "drm"])?;
    let buses: Vec<String> = (0..gpus).map(card::bus_name).collect();
    let pci = class.join("pci_bus");
    if pci.exists() {
        veils.cover(&pci, &buses.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    fs::create_dir("/sys/class/kfd")?;
    card::write(devices, class, asic, gpus)?;
    symlink("../../devices/virtual/kfd/kfd", "/sys/class/kfd/kfd")?;
    veils.cover(Path::new("/sys/module"), &["amdgpu"])?;
    fs::create_dir("/sys/module/amdgpu")?;
    fs::write("/sys/module/amdgpu/initstate", "live\n")?;
    Ok(())
}

/// Prepares `root` for chroot: adds the host's /proc, /dev, /sys and /tmp, and the folders to share.
pub fn make_root(root: &Path, shared: &[(PathBuf, PathBuf)]) -> Result<()> {
    ensure!(root.is_dir(), "{} is no folder", root.display());
    let mut veils = Veils::default();
    veils.cover(root, &[])?;
    let host = ["/proc", "/dev", "/sys", "/tmp"].map(|path| (PathBuf::from(path), PathBuf::from(path)));
    for (source, target) in host.iter().chain(shared) {
        veils
            .share(root, source, target)
            .with_context(|| format!("show {} in the root", source.display()))?;
    }
    Ok(())
}
