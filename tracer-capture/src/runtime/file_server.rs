//! The user whose program serves a file system.
//!
//! The kernel reads a library while a probe is being attached. tracer cannot ask the user in between, and nothing interrupts such a
//! read, so the program that serves the file could stop the recorder for good.

use crate::target::proc_maps::Mapping;

/// FUSE_SUPER_MAGIC (fs/fuse/inode.c), as `f_type` of statfs.
pub const FUSE: u64 = 0x6573_5546;

/// Returns the user whose program serves the file system of a mapped file, from the contents of `/proc/PID/mountinfo`; `None` if
/// they do not name the user.
///
/// Format: Documentation/filesystems/proc.rst, 3.5. FUSE shows the user as `user_id` among the options of the superblock.
pub fn by(mapping: &Mapping, mountinfo: &[u8]) -> Option<u32> {
    let (major, minor) = mapping.file.device.split_once(':')?;
    let hex = |digits| u32::from_str_radix(digits, 16).ok();
    let device = format!("{}:{}", hex(major)?, hex(minor)?);
    let text = String::from_utf8_lossy(mountinfo);
    let mut mounts = text.lines().filter(|line| line.split(' ').nth(2) == Some(&device));
    let (_, of_superblock) = mounts.next()?.split_once(" - ")?;
    let mut options = of_superblock.split(' ').nth(2)?.split(',');
    options.find_map(|option| option.strip_prefix("user_id=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::proc_maps::executable_in;

    #[test]
    fn the_superblock_of_the_mapped_device_names_the_user() {
        let of = |device: &str| {
            let line = format!("7f00a000-7f00b000 r-xp 00002000 {device} 77 /home/ann/fuse/lib.so\n");
            executable_in(line.as_bytes()).remove(0)
        };
        let mounts = b"22 1 253:0 / / rw - ext4 /dev/vda rw,user_id=7\n\
            90 22 0:45 / /home/ann/fuse rw,nosuid,nodev - fuse.sshfs host: rw,user_id=1000,group_id=1000,allow_other\n\
            91 22 0:46 / /cvmfs ro shared:3 - fuse cvmfs2 ro,user_id=0,group_id=0,default_permissions\n";
        assert_eq!(by(&of("00:2d"), mounts), Some(1000));
        assert_eq!(by(&of("00:2e"), mounts), Some(0));
        assert_eq!(by(&of("00:2f"), mounts), None, "not mounted");
        assert_eq!(by(&of("00:2d"), b"90 22 0:45 / / rw"), None, "cut short");
    }
}
