//! Files of docs/ that tests write from the code.

use std::{fs, path::Path};

/// Checks that a file in docs/ has these contents, after writing them if `UPDATE_DOCS` is set; `fix` says how to write it anew.
pub fn is(name: &str, expected: &str, fix: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, expected).expect("docs/ is there");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/{name} is out of date: {fix}");
}
