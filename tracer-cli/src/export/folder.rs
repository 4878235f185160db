//! The folder of a CSV export.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    sync::mpsc::Receiver,
};

use anyhow::{Context, bail};
use tracer_core::tables::Table;
use tracer_export::{About, csv};
use tracer_files::{Folder, Mode, Owner};

use super::{Done, Read, pass};

/// Writes the files of an export into a folder, whole or not at all, with the rights of its owner.
///
/// # Errors
/// If the folder exists and has other files than those of an export, or it cannot be written.
pub fn write(owner: &Owner, path: &Path, mode: Mode, about: &About, receive: Receiver<Read>) -> anyhow::Result<Done> {
    owner.run(|| {
        let (above, name) = Folder::above(path)?;
        let above = above.with_mode(mode);
        let (folder, is_new) = open(&above, &name)?;
        let folder = folder.with_mode(mode);
        let done = fill(&folder, about, receive);
        if done.is_err() {
            // The first error is the one to report.
            let _ = remove(&folder, &|name| is_temporary(name));
            let _ = if is_new { above.remove_folder(&name) } else { Ok(()) };
        }
        done
    })?
}

/// Opens the folder, and returns whether it is new. An existing one may only have the files of an export.
fn open(above: &Folder, name: &OsStr) -> anyhow::Result<(Folder, bool)> {
    match above.create_folder(name) {
        Ok(folder) => return Ok((folder, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    let folder = above
        .folder(name)
        .context("it exists and is not a folder; name a new one")?;
    folder.require_own().context("the folder belongs to another user")?;
    let foreign = folder.entries()?.into_iter().find(|entry| !is_of_export(&entry.name));
    match foreign {
        Some(entry) => bail!(
            "the folder has {}, which is not of an export; name a new folder",
            tracer_core::foreign::line(entry.name.display())
        ),
        None => Ok((folder, false)),
    }
}

/// Writes the files under temporary names, and then replaces those of an earlier export.
fn fill(folder: &Folder, about: &About, receive: Receiver<Read>) -> anyhow::Result<Done> {
    // The files stay open for their sizes, and to make them durable.
    let files: RefCell<Vec<(String, File)>> = RefCell::default();
    let create = |name: &str| -> io::Result<Box<dyn Write>> {
        let file = folder.recreate_file(&temporary(name))?;
        files.borrow_mut().push((name.to_owned(), file.try_clone()?));
        Ok(Box::new(BufWriter::new(file)))
    };
    let written = pass(receive, Box::new(csv::Csv::new(Box::new(create), about)))?;
    let files = files.into_inner();
    let mut bytes = 0;
    for (_, file) in &files {
        file.sync_data()?;
        bytes += file.metadata()?.len();
    }
    let names: BTreeSet<&OsStr> = files.iter().map(|(name, _)| OsStr::new(name)).collect();
    remove(folder, &|name| !is_temporary(name) && !names.contains(name))?;
    for (name, _) in &files {
        folder.rename(&temporary(name), OsStr::new(name))?;
    }
    folder.sync()?;
    Ok(Done { written, bytes })
}

/// Removes the files whose names fit.
fn remove(folder: &Folder, fits: &dyn Fn(&OsStr) -> bool) -> io::Result<()> {
    let entries = folder.entries()?.into_iter();
    entries
        .filter(|entry| fits(&entry.name))
        .try_for_each(|entry| folder.remove_file(&entry.name))
}

fn temporary(name: &str) -> OsString {
    format!(".{name}.tmp").into()
}

fn is_temporary(name: &OsStr) -> bool {
    let name = name
        .to_str()
        .and_then(|name| name.strip_prefix('.')?.strip_suffix(".tmp"));
    name.is_some_and(|name| is_of_export(OsStr::new(name)))
}

/// Returns whether an export has a file of this name.
fn is_of_export(name: &OsStr) -> bool {
    let is_table = |table: Table| name == csv::file_name(table).as_str();
    name == csv::MANIFEST || Table::ALL.into_iter().any(is_table) || is_temporary(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_knows_its_own_files() {
        for own in ["dispatches.csv", "manifest.json", ".copies.csv.tmp"] {
            assert!(is_of_export(OsStr::new(own)), "{own}");
        }
        for foreign in ["notes.csv", "dispatches", ".tmp", "..csv.tmp", "manifest.json.bak"] {
            assert!(!is_of_export(OsStr::new(foreign)), "{foreign}");
        }
    }
}
