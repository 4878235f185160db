//! docs/compatibility.md, generated from the results in docs/compatibility.json.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::table::CLIENTS;
use crate::project::Project;

/// A program at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub program: String,
    pub version: String,
    pub runtime: String,
    pub asic: String,
    pub gpus: u8,
    pub processes: u64,
    /// Whether the program stores to doorbells itself.
    pub own_doorbells: bool,
    /// Whether it does so on a queue of PM4 commands, which tracer does not read.
    #[serde(default)]
    pub pm4: bool,
    /// Dispatches of the trace by path `unseen`.
    pub unseen: Option<u64>,
    pub dispatches: u64,
    pub doorbells: u64,
    pub copies: u64,
    /// The parts of the comparison that differ.
    pub differs: Vec<String>,
    pub losses: u64,
    /// The outcome of rule `coverage`.
    #[serde(default)]
    pub coverage: String,
    pub named: u64,
    pub submissions: u64,
    pub linked: u64,
    /// Why it does not show what it must; these have paths and times, and stay out of the document.
    #[serde(skip)]
    pub reasons: Vec<String>,
    /// Whether it says nothing: no trace, an early exit, or too few dispatches. Such a row stays out of the document.
    #[serde(skip)]
    pub is_empty: bool,
}

impl Row {
    fn key(&self) -> (usize, &str, &str) {
        let declared = CLIENTS.iter().position(|client| client.name == self.program);
        (declared.unwrap_or(usize::MAX), &self.runtime, &self.asic)
    }
}

/// The results and the document.
pub struct Document;

impl Document {
    /// Replaces the rows of the programs that ran, and writes both files.
    pub fn update(project: &Project, fresh: Vec<Row>) -> Result<()> {
        let results = results(project);
        let kept = match fs::read(&results) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| format!("cannot read {}", results.display()))?,
            Err(_) => Vec::new(),
        };
        let rows = merge(kept, fresh);
        fs::write(&results, serde_json::to_string_pretty(&rows)? + "\n")
            .with_context(|| format!("cannot write {}", results.display()))?;
        let path = project.root().join("docs/compatibility.md");
        fs::write(&path, document(&rows)).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }
}

fn results(project: &Project) -> PathBuf {
    project.root().join("docs/compatibility.json")
}

/// Joins older and fresh rows. Rows of programs that are no longer declared are dropped.
fn merge(kept: Vec<Row>, fresh: Vec<Row>) -> Vec<Row> {
    let ran = |row: &Row| fresh.iter().any(|other| other.program == row.program);
    let is_declared = |row: &Row| CLIENTS.iter().any(|client| client.name == row.program);
    let mut rows: Vec<Row> = kept.into_iter().filter(|row| is_declared(row) && !ran(row)).collect();
    rows.extend(fresh.into_iter().filter(|row| !row.is_empty));
    rows.sort_by(|one, other| one.key().cmp(&other.key()));
    rows
}

const HEAD: &str = "\
# Compatibility
`cargo xtask clients` records programs of others, unmodified, and compares each trace with the truth log of the simulated GPU
(`tests/kfd-sim`). It generated this page. No GPU was there: the programs, the runtime and its traffic
are real, the device is simulated, and most kernels have no effect on it. So this page says nothing about results or speed.

`equal`: the trace has every dispatch, doorbell or copy of the truth log with the same fields, and no other. The rest are queues,
ioctls, GPU times, names of kernels, calls, and the report's totals; a cell names what differs. `names` counts dispatches whose kernel has a name; the runtime's own copies and
fills are in no code object. `linked` counts dispatches and copies that are linked to a HIP or HSA call; those of threads of the
runtime are in no call.

";

const COLUMNS: &str = "\
| program | version | runtime | GPU | processes | dispatches | doorbells | copies | the rest | losses | names | linked |
|---|---|---|---|---|---|---|---|---|---|---|---|
";

const OWN_DOORBELLS: &str = "
## Programs that store to doorbells themselves
These use no HSA runtime, and no probe sees their doorbells. tracer reads AQL packets from their slots after the device took them: each
is compared with the truth log, and the dispatches are counted by path `unseen`. tracer does not read queues of PM4 commands: their
dispatches are unknown. Rule `coverage` of `tracer verify` fails for AQL packets, since no probe saw their doorbells. It is
inconclusive for PM4 commands, since nothing shows what was submitted.

| program | version | GPU | commands | dispatches of the device | by path `unseen` | rule `coverage` |
|---|---|---|---|---|---|---|
";

/// Formats the document.
fn document(rows: &[Row]) -> String {
    let mut text = HEAD.to_owned() + COLUMNS;
    for row in rows.iter().filter(|row| !row.own_doorbells) {
        text.push_str(&line(row));
    }
    let unseen: Vec<&Row> = rows.iter().filter(|row| row.own_doorbells).collect();
    if !unseen.is_empty() {
        text.push_str(OWN_DOORBELLS);
        for row in unseen {
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} | {} |\n",
                row.program,
                row.version,
                gpu(row),
                if row.pm4 { "PM4" } else { "AQL" },
                row.dispatches,
                row.unseen.map_or("unknown".to_owned(), |count| count.to_string()),
                row.coverage
            ));
        }
    }
    let waiting: Vec<String> = CLIENTS
        .iter()
        .filter_map(|client| Some(format!("| {} | {} |\n", client.name, client.waits?)))
        .collect();
    if !waiting.is_empty() {
        text.push_str("\n## Not compared yet\n| program | waits for |\n|---|---|\n");
        text.push_str(&waiting.concat());
    }
    text
}

fn gpu(row: &Row) -> String {
    match row.gpus {
        1 => format!("{}, simulated", row.asic),
        gpus => format!("{gpus} x {}, simulated", row.asic),
    }
}

fn line(row: &Row) -> String {
    let part = |name: &str, count: u64| {
        let basis = ["queues", name]
            .iter()
            .any(|part| row.differs.iter().any(|differs| differs == part));
        match (basis, count) {
            (true, _) => "differ".to_owned(),
            (false, 0) => "none, equal".to_owned(),
            (false, count) => format!("{count}, equal"),
        }
    };
    let columns = ["dispatches", "doorbells", "copies"];
    let others = row.differs.iter().filter(|part| !columns.contains(&part.as_str()));
    let others: Vec<&str> = others.map(String::as_str).collect();
    let rest = if others.is_empty() {
        "equal".to_owned()
    } else {
        format!("differ: {}", others.join(", "))
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {rest} | {} | {} of {} | {} of {} |\n",
        row.program,
        row.version,
        row.runtime,
        gpu(row),
        row.processes,
        part("dispatches", row.dispatches),
        part("doorbells", row.doorbells),
        part("copies", row.copies),
        row.losses,
        row.named,
        row.dispatches,
        row.linked,
        row.submissions,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(program: &str, dispatches: u64) -> Row {
        Row {
            program: program.to_owned(),
            asic: "gfx942".to_owned(),
            gpus: 1,
            dispatches,
            ..Row::default()
        }
    }

    #[test]
    fn a_run_of_one_program_keeps_the_others() {
        let kept = vec![row("clinfo", 0), row("pyopencl", 400), row("gone", 1)];
        let rows = merge(kept, vec![row("pyopencl", 401)]);
        let now: Vec<_> = rows.iter().map(|row| (row.program.as_str(), row.dispatches)).collect();
        assert_eq!(now, [("clinfo", 0), ("pyopencl", 401)]);
        let nothing = Row {
            is_empty: true,
            ..row("pyopencl", 0)
        };
        assert_eq!(merge(rows, vec![nothing]), [row("clinfo", 0)]);
    }

    #[test]
    fn a_difference_is_shown_in_its_column() {
        let mut one = row("clinfo", 7);
        assert!(
            line(&one).contains("| 7, equal | none, equal | none, equal | equal |"),
            "{}",
            line(&one)
        );
        assert!(line(&one).contains("gfx942, simulated"));
        one.differs = vec!["doorbells".to_owned()];
        assert!(line(&one).contains("| 7, equal | differ |"), "{}", line(&one));
        one.differs = vec!["queues".to_owned()];
        assert!(
            line(&one).contains("| differ | differ | differ | differ: queues |"),
            "{}",
            line(&one)
        );
    }

    #[test]
    fn the_document_is_that_of_its_results() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
        let results = fs::read(format!("{docs}/compatibility.json")).expect("the results");
        let rows: Vec<Row> = serde_json::from_slice(&results).expect("rows");
        let written = fs::read_to_string(format!("{docs}/compatibility.md")).expect("the document");
        let fresh = document(&rows);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(format!("{docs}/compatibility.md"), fresh).expect("writable");
        } else {
            assert_eq!(
                written, fresh,
                "run `UPDATE_DOCS=1 cargo xtask test -- the_document_is_that_of_its_results`"
            );
        }
    }
}
