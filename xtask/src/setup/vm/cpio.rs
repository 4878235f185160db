//! Archives that the kernel unpacks as its first root file system ("newc", Documentation/driver-api/early-userspace).

/// An archive under construction.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    /// The next inode number: the kernel takes entries with the same number as links to each other.
    inode: u32,
}

impl Archive {
    /// Adds a folder. Its parents must have been added before.
    pub fn folder(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    /// Adds an executable file.
    pub fn program(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100_755, content);
    }

    /// Adds a file.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100_644, content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, name: &str, target: &str) {
        self.entry(name, 0o120_777, target.as_bytes());
    }

    /// Returns the bytes of the archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        // inode, mode, uid, gid, links, mtime, size, device (2), special device (2), size of the name, checksum
        let header = [self.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in header {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Pads to a multiple of four bytes, where names and contents end.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn entries_are_padded_and_ended() {
        let mut archive = Archive::default();
        archive.folder("dev");
        archive.program("init", b"#!/bin/sh\n");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("07070100000001000041ed"), "{text}");
        assert!(text.contains("init\x00\x00#!/bin/sh\n\x00\x00070701"), "{text:?}");
        assert!(text.contains("TRAILER!!!"));
    }
}
