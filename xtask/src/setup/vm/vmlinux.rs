//! The uncompressed kernel inside a bzImage.
//!
//! QEMU starts an ELF kernel through its PVH note at once; a bzImage would first decompress itself in the emulator, which takes a
//! second.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cmd;

/// Compressions of Debian's kernels: magic bytes, program.
const COMPRESSIONS: [(&[u8], &str); 3] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0x1f, 0x8b], "gzip"),
];

/// Writes the kernel inside the bzImage at `from` to `into`.
pub fn extract(from: &Path, into: &Path) -> Result<()> {
    let image = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    let payload = payload(&image).with_context(|| format!("{} is no bzImage", from.display()))?;
    let Some((_, program)) = COMPRESSIONS.iter().find(|(magic, _)| payload.starts_with(magic)) else {
        bail!("{} is compressed in an unknown way", from.display());
    };
    cmd::require(program, &format!("run `apt-get install {program}`"))?;
    let packed = into.with_extension("packed");
    fs::write(&packed, payload).with_context(|| format!("cannot write {}", packed.display()))?;
    let kernel = cmd::read_bytes(Command::new(program).arg("-dc").arg(&packed))?;
    ensure!(
        kernel.starts_with(b"\x7fELF"),
        "{} does not contain an ELF kernel",
        from.display()
    );
    fs::write(into, kernel).with_context(|| format!("cannot write {}", into.display()))?;
    cmd::remove_all(&packed)
}

/// Returns the compressed part (Documentation/arch/x86/boot.rst), without the size that follows xz and zstd streams.
fn payload(image: &[u8]) -> Option<&[u8]> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let field = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let setup_sectors = usize::from(*image.get(0x1f1)?).max(1);
    let start = (setup_sectors + 1) * 512 + field(0x248)?;
    let length = field(0x24c)?;
    image.get(start..start + length.checked_sub(4)?)
}

#[cfg(test)]
mod tests {
    use super::payload;

    #[test]
    fn the_payload_is_found_by_the_header() {
        let mut image = vec![0; 2048];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248] = 16;
        image[0x24c] = 12;
        image[1024 + 16..1024 + 24].copy_from_slice(b"contents");
        assert_eq!(payload(&image), Some(b"contents".as_slice()));
        image[0x202] = 0;
        assert_eq!(payload(&image), None);
        assert_eq!(payload(&[]), None);
    }
}
