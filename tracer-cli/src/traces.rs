//! Traces that a user names by a path, or by a pattern.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Returns the path that is given, or all paths that fit a pattern, in the order of their names.
///
/// # Errors
/// If no path fits the pattern, or it is not a pattern. Whether there is a trace at a path is not checked.
pub fn paths(pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    // A path that exists is no pattern, whatever its characters.
    if Path::new(pattern).exists() || !pattern.contains(['*', '?', '[']) {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let paths = glob::glob(pattern).with_context(|| format!("{pattern} is not a pattern"))?;
    let paths: Vec<PathBuf> = paths.collect::<Result<_, _>>()?;
    anyhow::ensure!(
        !paths.is_empty(),
        "no trace fits {pattern}; check the pattern, and quote it so that the shell does not expand it"
    );
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_every_path_that_fits_and_a_path_is_itself() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["b.trace", "a.trace", "c[1].trace", "other"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let of = |name: &str| paths(&at(name).to_string_lossy()).map_err(|error| error.to_string());
        assert_eq!(of("[ab].trace"), Ok(vec![at("a.trace"), at("b.trace")]));
        assert_eq!(of("c[1].trace"), Ok(vec![at("c[1].trace")]));
        assert_eq!(of("none.trace"), Ok(vec![at("none.trace")]));
        assert!(of("none*").is_err_and(|error| error.contains("quote it")));
    }
}
