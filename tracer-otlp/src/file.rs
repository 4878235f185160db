//! Files that the user names.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use crate::error::TargetError;

/// Reads at most so many bytes. A pipe will do: `--otlp-headers-file <(command)` keeps a token out of files.
///
/// # Errors
/// Returns [`TargetError::Unreadable`].
pub fn read(path: &Path, most: u64) -> Result<String, TargetError> {
    bounded(path, most).map_err(|error| TargetError::Unreadable {
        file: path.display().to_string(),
        error,
    })
}

fn bounded(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read(&file, 4).unwrap(), "text");
        for (path, most) in [(file.as_path(), 3), (Path::new("/dev/zero"), 4)] {
            assert_eq!(bounded(path, most).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        }
    }
}
