//! Parts that differ from what was written.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use polars::prelude::*;
use proptest::prelude::*;
use tracer_core::tables::{Fact, Loss, Table};
use tracer_store::{StoreError, Trace, TraceWriter};

use crate::support::{dispatch, manifest, rows};

/// Writes a trace with a hundred dispatches and a loss. Returns the dispatches' part, without a checksum, as other tools write it.
fn trace(dir: &Path) -> PathBuf {
    let summed = summed(dir);
    let part = summed.with_file_name("part-000001.parquet");
    fs::rename(summed, &part).unwrap();
    part
}

/// Writes the same trace, and returns the part as it was written.
fn summed(dir: &Path) -> PathBuf {
    let mut writer = TraceWriter::create(dir, manifest(), false).unwrap();
    (0..100).for_each(|index| writer.push(&dispatch(index, index)));
    writer.push(&Fact::Loss(Loss {
        time_ns: 50,
        source: "doorbell-ring".to_owned(),
        count: 3,
    }));
    writer.finish(|manifest| manifest.complete = true).unwrap();
    let mut parts = fs::read_dir(dir.join("dispatches")).unwrap();
    parts.next().unwrap().unwrap().path()
}

/// Asserts that the error names the part, and that the rest is readable.
fn assert_damaged(dir: &Path, part: &Path, reason: &str) {
    let trace = Trace::open(dir).unwrap();
    let error = trace
        .facts(&[Table::Dispatches])
        .unwrap()
        .find_map(Result::err)
        .unwrap();
    assert!(
        matches!(&error, StoreError::Damaged(damage) if damage.part == part),
        "{error}"
    );
    assert!(error.to_string().contains(reason), "{error}");
    assert!(error.to_string().contains("move it out of the trace"), "{error}");

    let mut facts = trace.facts(&Table::ALL).unwrap().skip_damaged();
    let readable: Vec<_> = facts.by_ref().map(Result::unwrap).collect();
    assert!(matches!(readable[..], [Fact::Loss(_)]), "{readable:?}");
    assert_eq!(facts.damaged().len(), 1);
    assert_eq!(rows(dir, Table::Losses).len(), 1);
}

fn write(part: &Path, mut frame: DataFrame) {
    ParquetWriter::new(File::create(part).unwrap())
        .finish(&mut frame)
        .unwrap();
}

fn read(part: &Path) -> DataFrame {
    ParquetReader::new(File::open(part).unwrap()).finish().unwrap()
}

/// Returns the frame with another column of that name.
fn with(frame: &DataFrame, column: Column) -> DataFrame {
    let mut frame = frame.clone();
    frame.with_column(column).unwrap();
    frame
}

#[test]
fn a_part_that_is_not_what_was_written() {
    let temporary = tempfile::tempdir().unwrap();
    let part = summed(temporary.path());
    assert_eq!(rows(temporary.path(), Table::Dispatches).len(), 100);
    let mut bytes = fs::read(&part).unwrap();
    bytes.push(0);
    fs::write(&part, bytes).unwrap();
    assert_damaged(temporary.path(), &part, "its contents changed: its CRC-32 is ");
}

#[test]
fn truncated_parts() {
    let temporary = tempfile::tempdir().unwrap();
    let part = trace(temporary.path());
    let whole = fs::read(&part).unwrap();
    for length in [0, 3, 8, whole.len() / 2, whole.len() - 1] {
        fs::write(&part, &whole[..length]).unwrap();
        assert_damaged(temporary.path(), &part, "not a whole Parquet file");
        let loaded = Trace::open(temporary.path()).unwrap().frame(Table::Dispatches).unwrap();
        assert_eq!(loaded.damaged[0].part, part);
        assert_eq!(loaded.frame.shape(), (0, Table::Dispatches.columns().len()));
    }
}

/// A footer that names fewer rows would hide the others.
#[test]
fn footers_that_name_other_rows_than_the_row_groups() {
    let temporary = tempfile::tempdir().unwrap();
    let part = trace(temporary.path());
    let whole = fs::read(&part).unwrap();
    // Thrift's compact protocol: 100 as an i64, then a list of one row group.
    let rows = [0x16, 0xc8, 0x01, 0x19, 0x1c];
    let found: Vec<usize> = (0..whole.len()).filter(|&at| whole[at..].starts_with(&rows)).collect();
    let [at] = found[..] else { panic!("{found:?}") };
    for (varint, number) in [([0xca, 0x01], 101), ([0x80, 0x01], 64), ([0x80, 0x00], 0)] {
        let mut bytes = whole.clone();
        bytes[at + 1..at + 3].copy_from_slice(&varint);
        fs::write(&part, bytes).unwrap();
        let reason = format!("its footer names {number} rows, and its row groups have 100");
        assert_damaged(temporary.path(), &part, &reason);
    }
}

#[test]
fn parts_of_something_else() {
    let temporary = tempfile::tempdir().unwrap();
    let part = trace(temporary.path());
    let frame = read(&part);
    fs::write(&part, "kernel,start,end\n".repeat(100)).unwrap();
    assert_damaged(temporary.path(), &part, "not a whole Parquet file");
    write(&part, df!("kernel" => [1u64, 2]).unwrap());
    assert_damaged(temporary.path(), &part, "it has no column `queue`");
    let signed = frame.column("index").unwrap().cast(&DataType::Int64).unwrap();
    write(&part, with(&frame, signed));
    assert_damaged(temporary.path(), &part, "column `index` is i64, not u64");
}

#[test]
fn values_that_this_version_does_not_know() {
    let temporary = tempfile::tempdir().unwrap();
    let part = trace(temporary.path());
    let frame = read(&part);
    let unknown = Column::new_scalar(
        "path".into(),
        Scalar::from(PlSmallStr::from("teleport")),
        frame.height(),
    );
    write(&part, with(&frame, unknown));
    assert_damaged(temporary.path(), &part, "column `path` has an unknown value in row 0");
    write(
        &part,
        with(
            &frame,
            Column::full_null("index".into(), frame.height(), &DataType::UInt64),
        ),
    );
    assert_damaged(temporary.path(), &part, "column `index` has missing values");
}

/// A part of an older version lacks a column that was added later; a part of a newer version has more columns, perhaps at other
/// positions.
#[test]
fn parts_of_other_versions() {
    let temporary = tempfile::tempdir().unwrap();
    let part = trace(temporary.path());
    let frame = read(&part);
    write(&part, frame.drop("reserve_ns").unwrap());
    let mut newer = frame.clone();
    let weather = Column::new_scalar("weather".into(), Scalar::from(PlSmallStr::from("rain")), frame.height());
    newer.insert_column(0, weather).unwrap();
    write(&part.with_file_name("part-000002.parquet"), newer);
    // Otherwise the rows that another tool added would be damage.
    change_manifest(temporary.path(), |manifest| {
        drop(manifest.as_object_mut().unwrap().remove("counts"));
    });

    let facts = rows(temporary.path(), Table::Dispatches);
    assert_eq!(facts.len(), 200);
    let reserves = facts
        .iter()
        .filter(|fact| matches!(fact, Fact::Dispatch(row) if row.reserve_ns.is_some()));
    assert_eq!(reserves.count(), 50);
    let loaded = Trace::open(temporary.path()).unwrap().frame(Table::Dispatches).unwrap();
    let frame = loaded.frame;
    assert_eq!(frame.shape(), (200, Table::Dispatches.columns().len()));
    assert_eq!(frame.column("reserve_ns").unwrap().null_count(), 150);
}

fn change_manifest(dir: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let path = dir.join("manifest.json");
    let mut manifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).unwrap();
}

/// Returns the damage that every way of reading reports.
fn damage(dir: &Path) -> Vec<(PathBuf, String)> {
    let trace = Trace::open(dir).unwrap();
    let mut facts = trace.facts(&Table::ALL).unwrap().skip_damaged();
    let rows = facts.by_ref().map(Result::unwrap).count() as u64;
    let counted: u64 = Table::ALL.iter().map(|&table| trace.rows(table).unwrap()).sum();
    assert_eq!(rows, counted);
    assert_eq!(trace.damage().unwrap(), facts.damaged());
    let damage = facts.damaged().iter();
    damage
        .map(|damage| (damage.part.clone(), damage.reason.clone()))
        .collect()
}

#[test]
fn a_complete_trace_without_a_tables_folder_is_damaged() {
    let temporary = tempfile::tempdir().unwrap();
    trace(temporary.path());
    assert_eq!(damage(temporary.path()), []);
    let table = temporary.path().join("dispatches");
    fs::remove_dir_all(&table).unwrap();
    let reason = "the folder is missing, and the recorder wrote 100 rows into it".to_owned();
    assert_eq!(damage(temporary.path()), [(table.clone(), reason.clone())]);
    let error = Trace::open(temporary.path())
        .unwrap()
        .facts(&[Table::Dispatches])
        .unwrap();
    let error = error.last().unwrap().unwrap_err();
    assert!(
        matches!(&error, StoreError::Damaged(found) if found.reason == reason),
        "{error}"
    );
    // A recorder that did not finish has promised nothing.
    change_manifest(temporary.path(), |manifest| {
        manifest["complete"] = false.into();
        manifest.as_object_mut().unwrap().remove("counts");
    });
    assert_eq!(damage(temporary.path()), []);
}

#[test]
fn a_table_that_is_no_folder_or_lacks_rows_is_damaged() {
    let temporary = tempfile::tempdir().unwrap();
    let part = trace(temporary.path());
    fs::rename(&part, temporary.path().join("elsewhere")).unwrap();
    let table = temporary.path().join("dispatches");
    let reason = "it has 0 rows, and the recorder wrote 100".to_owned();
    assert_eq!(damage(temporary.path()), [(table.clone(), reason)]);
    fs::remove_dir(&table).unwrap();
    fs::write(&table, "").unwrap();
    assert_eq!(
        damage(temporary.path()),
        [(table.clone(), "it is not a folder".to_owned())]
    );
    fs::remove_file(&table).unwrap();
    std::os::unix::fs::symlink("losses", &table).unwrap();
    assert_eq!(damage(temporary.path()), [(table, "it is not a folder".to_owned())]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Flipped bits on the disk: none of the part's rows are accepted, and the rest stays readable.
    #[test]
    fn flipped_bits(places in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4)) {
        let temporary = tempfile::tempdir().unwrap();
        let part = summed(temporary.path());
        let written = fs::read(&part).unwrap();
        let mut bytes = written.clone();
        for (place, bit) in places {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
        }
        // The same bit was flipped twice.
        prop_assume!(bytes != written);
        fs::write(&part, bytes).unwrap();
        let trace = Trace::open(temporary.path()).unwrap();
        let mut facts = trace.facts(&Table::ALL).unwrap().skip_damaged();
        let readable: Vec<_> = facts.by_ref().map(Result::unwrap).collect();
        prop_assert!(matches!(readable[..], [Fact::Loss(_)]), "{:?}", readable);
        let damaged: Vec<_> = facts.damaged().iter().map(|damage| damage.part.clone()).collect();
        prop_assert_eq!(damaged, [part]);
    }
}
