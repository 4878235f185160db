//! The paths of sources in what is built: names that are the same on each machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::project::Project;

/// Returns the compiler's arguments that replace the folders of this machine. Its messages keep them.
pub fn arguments(project: &Project) -> Result<Vec<String>> {
    let map = |(from, to): (PathBuf, &str)| format!("--remap-path-prefix={}={to}", from.display());
    let folders = folders(project)?.into_iter().map(map);
    Ok(folders.chain(["--remap-path-scope=object".to_owned()]).collect())
}

/// Fails if a file contains the path of a folder of this machine.
pub fn check(project: &Project, file: &Path) -> Result<()> {
    let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    for (folder, _) in folders(project)? {
        let folder = folder.display().to_string();
        if contains(&content, folder.as_bytes()) {
            bail!(
                "{} contains the path {folder}: a build in another folder differs",
                file.display()
            );
        }
    }
    Ok(())
}

/// Returns the folders of sources, and their names in what is built. The compiler takes the last one that matches; the target folder
/// is usually in the project.
fn folders(project: &Project) -> Result<[(PathBuf, &'static str); 4]> {
    let cargo_home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => env::home_dir().context("HOME is not set")?.join(".cargo"),
    };
    Ok([
        (project.toolchain().sysroot.clone(), "/rust"),
        (cargo_home, "/cargo"),
        (project.root().to_owned(), "/tracer"),
        (project.target().to_owned(), "/tracer/target"),
    ])
}

fn contains(content: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && content.windows(part.len()).any(|bytes| bytes == part)
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn a_path_is_found_anywhere() {
        assert!(contains(b"/home/a/x.rs", b"/home/a"));
        assert!(contains(b"at /home/a", b"/home/a"));
        assert!(!contains(b"/home/", b"/home/a"));
        assert!(!contains(b"/home/a", b""));
    }
}
