//! JSON lines and CSV: every value of every row.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;

use serde_json::Value;
use tracer_core::tables::{Record, Table};

use super::{export, recording};
use crate::csv::{Csv, MANIFEST};
use crate::jsonl::Jsonl;

#[test]
fn each_line_is_a_row() {
    let mut out = Vec::new();
    let about = recording::about();
    let written = export(Box::new(Jsonl::new(&mut out, &about).unwrap()), recording::facts());
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains('\u{1b}') && !text.contains("##["), "{text}");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let first = lines.next().unwrap();
    assert_eq!(first, serde_json::json!({ "manifest": about }));
    assert_eq!(first["manifest"]["not_watched"][0], "kernel_rings");
    let facts = recording::facts();
    for fact in &facts {
        let mut expected = serde_json::to_value(Record::of(fact)).unwrap();
        expected["table"] = Table::of(fact).name().into();
        assert_eq!(lines.next().unwrap(), expected);
    }
    assert_eq!(lines.next(), None);
    assert_eq!(written.rows.values().sum::<u64>(), facts.len() as u64);
    assert_eq!(written.rows[&Table::Dispatches], 3);
}

/// A file of an export, in memory.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_table_is_a_file() {
    let files: RefCell<BTreeMap<String, Shared>> = RefCell::default();
    let create = |name: &str| -> io::Result<Box<dyn Write>> {
        let file = Shared::default();
        assert!(
            files.borrow_mut().insert(name.to_owned(), file.clone()).is_none(),
            "{name}"
        );
        Ok(Box::new(file))
    };
    export(
        Box::new(Csv::new(Box::new(create), &recording::about())),
        recording::facts(),
    );
    let mut files = files.into_inner();
    let manifest = files.remove(MANIFEST).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest.0.borrow()).unwrap();
    assert_eq!(
        (&manifest["rows"]["dispatches"], &manifest["losses"]["doorbell"]),
        (&3.into(), &3.into())
    );
    let mut seen = 0;
    for (name, file) in &files {
        let table = Table::of_name(name.strip_suffix(".csv").unwrap()).unwrap();
        let content = file.0.borrow().clone();
        let mut reader = ::csv::Reader::from_reader(&content[..]);
        let columns: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        assert_eq!(
            columns,
            table.columns().iter().map(|column| column.name).collect::<Vec<_>>()
        );
        let facts = recording::facts();
        let mut expected = facts.iter().filter(|fact| Table::of(fact) == table);
        for row in reader.records() {
            let row = row.unwrap();
            let json = serde_json::to_value(Record::of(expected.next().unwrap())).unwrap();
            for (column, cell) in columns.iter().zip(&row) {
                let value = match &json[column] {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                assert_eq!(cell, value, "{column} in {name}");
            }
            seen += 1;
        }
        assert!(expected.next().is_none());
    }
    assert_eq!(seen, recording::facts().len());
}
