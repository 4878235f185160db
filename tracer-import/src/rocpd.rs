//! rocpd, the database of rocprofv3: the dispatches of kernels in it.
//!
//! AMD publishes the schema with rocprofiler-sdk (rocpd_tables.sql, version 3). Each table's name ends with a suffix, and a file may
//! have several sets of tables. Views, which join the sets, are not read: they are statements that the file chooses.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use tracer_core::profile::{Profile, Shape};

/// The table of dispatches, before the suffix.
const DISPATCHES: &str = "rocpd_kernel_dispatch";
/// Most sets of tables: one per process and file that was merged.
const MAX_SETS: usize = 4096;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RocpdError {
    /// SQLite's error.
    #[error("it is no rocpd database that can be read: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// It has no dispatches of rocpd.
    #[error("it has no table {DISPATCHES}; `rocprofv3 --kernel-trace --output-format rocpd -- COMMAND` writes one")]
    NoTable,
}

/// Reads the dispatches in a file.
///
/// # Errors
/// Says why the file cannot be read.
pub fn read(path: &Path) -> Result<Profile, RocpdError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    database.pragma_update(None, "trusted_schema", false)?;
    let mut names = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let names = names.query_map([], |row| row.get::<_, String>(0))?;
    let mut suffixes = Vec::new();
    for name in names {
        if let Some(suffix) = name?.strip_prefix(DISPATCHES)
            && is_plain(suffix)
            && suffixes.len() < MAX_SETS
        {
            suffixes.push(suffix.to_owned());
        }
    }
    if suffixes.is_empty() {
        return Err(RocpdError::NoTable);
    }
    let mut profile = Profile::default();
    for suffix in suffixes {
        processes(&database, &suffix, &mut profile)?;
        kernels(&database, &suffix, &mut profile)?;
        dispatches(&database, &suffix, &mut profile)?;
    }
    Ok(profile)
}

/// Returns whether a suffix can be part of a statement: that of rocprofv3 is a UUID.
fn is_plain(suffix: &str) -> bool {
    suffix
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn processes(database: &Connection, suffix: &str, profile: &mut Profile) -> rusqlite::Result<()> {
    let mut statement = database.prepare(&format!("SELECT pid FROM \"rocpd_info_process{suffix}\""))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        profile.processes.extend(row.get::<_, Option<u32>>(0).ok().flatten());
    }
    Ok(())
}

fn kernels(database: &Connection, suffix: &str, profile: &mut Profile) -> rusqlite::Result<()> {
    let mut statement = database.prepare(&format!(
        "SELECT process.pid, kernel.kernel_object, coalesce(kernel.display_name, kernel.kernel_name) \
         FROM \"rocpd_info_kernel_symbol{suffix}\" kernel JOIN \"rocpd_info_process{suffix}\" process ON process.id = kernel.pid"
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let (Ok(pid), Ok(object), Ok(name)) = (row.get(0), row.get::<_, i64>(1), row.get(2)) {
            profile.kernels.insert((pid, object.cast_unsigned()), name);
        }
    }
    Ok(())
}

fn dispatches(database: &Connection, suffix: &str, profile: &mut Profile) -> rusqlite::Result<()> {
    let mut statement = database.prepare(&format!(
        "SELECT process.pid, kernel.kernel_object, grid_size_x, grid_size_y, grid_size_z, workgroup_size_x, workgroup_size_y, \
         workgroup_size_z, count(*) FROM \"{DISPATCHES}{suffix}\" dispatch \
         LEFT JOIN \"rocpd_info_process{suffix}\" process ON process.id = dispatch.pid \
         LEFT JOIN \"rocpd_info_kernel_symbol{suffix}\" kernel ON kernel.id = dispatch.kernel_id GROUP BY 1, 2, 3, 4, 5, 6, 7, 8"
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let count = row.get::<_, i64>(8)?.cast_unsigned();
        let known = match shape(row) {
            // A kernel object at 0 is unknown.
            Ok(shape) if shape.kernel_object != 0 => profile.dispatches.entry(shape).or_default(),
            Ok(_) | Err(_) => &mut profile.unknown,
        };
        *known = known.saturating_add(count);
    }
    Ok(())
}

/// Reads a shape. A value that is null, or that no packet can have, is an error.
fn shape(row: &rusqlite::Row<'_>) -> rusqlite::Result<Shape> {
    Ok(Shape {
        pid: row.get(0)?,
        kernel_object: row.get::<_, i64>(1)?.cast_unsigned(),
        grid: [row.get(2)?, row.get(3)?, row.get(4)?],
        workgroup: [row.get(5)?, row.get(6)?, row.get(7)?],
    })
}
