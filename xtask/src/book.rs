//! The book: the pages of docs/, as `docs/SUMMARY.md` lists them.

use std::process::Command;

use anyhow::Result;

use crate::cmd;
use crate::project::Project;
use crate::setup::{self, Part};

/// Makes the book.
pub fn run(project: &Project) -> Result<()> {
    setup::run(project, &[Part::MdBook])?;
    let book = project.target().join("book");
    let mut mdbook = Command::new(setup::mdbook(project).program());
    cmd::run(mdbook.arg("build").arg(project.root()).arg("--dest-dir").arg(&book))?;
    eprintln!("==> open {}", book.join("index.html").display());
    Ok(())
}
