//! Whether what a run shows is what the program's declaration demands.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::document::Row;
use super::table::{Client, Expect};

/// What `compare-client` of tests/e2e found.
#[derive(Debug, Deserialize)]
pub struct Found {
    folder: String,
    exit: Option<i32>,
    late: bool,
    pub recordings: usize,
    said: String,
    compared: BTreeMap<String, u64>,
    differences: BTreeMap<String, String>,
    taken: Option<String>,
    dispatches: u64,
    pm4_dispatches: u64,
    total: Option<u64>,
    by_path: BTreeMap<String, Option<u64>>,
    doorbells: u64,
    named: u64,
    submissions: u64,
    linked: u64,
    processes: u64,
    losses: u64,
    coverage: String,
}

/// Exit codes of tracer and the simulator that mean that they failed, and not the program.
const OWN_FAILURES: [i32; 4] = [124, 125, 126, 127];

/// The exit code of tracer if the program exited with 0 and used the GPU without a function that has a probe.
const NOT_PROBED: i32 = 124;

/// Judges what was found.
pub fn row(client: &Client, found: &Found) -> Row {
    let mut reasons = Vec::new();
    let unseen = found.by_path.get("unseen").copied().flatten();
    let dispatches = match client.expect {
        Expect::Equal | Expect::Unseen => found.dispatches,
        Expect::Opaque => found.pm4_dispatches,
    };
    let mut demand = |holds: bool, reason: String| {
        if !holds {
            reasons.push(reason);
        }
    };
    let ended = match client.expect {
        Expect::Equal => found
            .exit
            .is_some_and(|code| code == 0 || !client.succeeds && !OWN_FAILURES.contains(&code)),
        Expect::Unseen | Expect::Opaque => found.exit == Some(NOT_PROBED),
    };
    demand(!found.late, format!("it did not end within {} s", client.limit));
    demand(ended, format!("it ended with {:?}: {}", found.exit, found.said));
    demand(
        dispatches >= client.at_least,
        format!("{dispatches} dispatches, and at least {} are due", client.at_least),
    );
    demand(found.processes > 0, "no process used the device".to_owned());
    match client.expect {
        Expect::Equal => {
            let differences = found.differences.iter();
            let texts: Vec<String> = differences
                .map(|(part, first)| format!("{part}: {}", first.trim()))
                .collect();
            demand(texts.is_empty(), texts.join("; "));
            // Without a packet there is nothing to cover.
            let due = if found.dispatches == 0 {
                "inconclusive"
            } else {
                client.coverage
            };
            let coverage = [due, "pass"].contains(&found.coverage.as_str());
            demand(coverage, format!("rule coverage: {}", found.coverage));
        }
        Expect::Unseen => {
            demand(
                unseen == Some(found.dispatches),
                format!("{dispatches} dispatches, and {unseen:?} by path unseen"),
            );
            demand(found.taken.is_none(), format!("packets: {:?}", found.taken));
            demand(found.coverage == "fail", format!("rule coverage: {}", found.coverage));
            demand(found.losses == 0, format!("{} losses", found.losses));
        }
        Expect::Opaque => {
            // A total, or a count by a path that the commands may have taken, would claim what nobody saw.
            let paths = ["doorbell", "thunk", "unseen"].map(|path| found.by_path.get(path).copied().flatten());
            demand(
                (found.total, paths) == (None, [None; 3]),
                format!("dispatches {:?}, by path {:?}", found.total, found.by_path),
            );
            demand(found.dispatches == 0, format!("{} AQL packets", found.dispatches));
            // Its queue exists, and nothing shows what was submitted to it.
            let open = found.coverage == "inconclusive";
            demand(open, format!("rule coverage: {}", found.coverage));
            demand(found.losses == 0, format!("{} losses", found.losses));
        }
    }
    if !reasons.is_empty() {
        reasons.push(format!("see {}", found.folder));
    }
    let differs: Vec<String> = match client.expect {
        Expect::Equal => found.differences.keys().cloned().collect(),
        Expect::Unseen | Expect::Opaque => Vec::new(),
    };
    Row {
        is_empty: !reasons.is_empty() && differs.is_empty(),
        own_doorbells: client.expect != Expect::Equal,
        pm4: client.expect == Expect::Opaque,
        unseen,
        dispatches,
        coverage: found.coverage.clone(),
        doorbells: found.doorbells,
        copies: found.compared.get("copies").copied().unwrap_or(0),
        differs,
        losses: found.losses,
        named: found.named,
        submissions: found.submissions,
        linked: found.linked,
        processes: found.processes,
        reasons,
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::table::CLIENTS;

    fn client(name: &str) -> &'static Client {
        CLIENTS.iter().find(|client| client.name == name).unwrap()
    }

    /// Returns what an equal run of enough dispatches finds.
    fn equal() -> Found {
        Found {
            folder: "/runs".to_owned(),
            exit: Some(0),
            late: false,
            recordings: 1,
            said: String::new(),
            compared: BTreeMap::new(),
            differences: BTreeMap::new(),
            taken: None,
            dispatches: 1_000_000,
            pm4_dispatches: 0,
            total: Some(1_000_000),
            by_path: BTreeMap::from([("doorbell".to_owned(), Some(1_000_000)), ("unseen".to_owned(), Some(0))]),
            doorbells: 1,
            named: 1,
            submissions: 1,
            linked: 1,
            processes: 1,
            losses: 0,
            coverage: "pass".to_owned(),
        }
    }

    #[test]
    fn what_is_demanded_of_an_equal_run() {
        let judged = |change: fn(&mut Found)| {
            let mut found = equal();
            change(&mut found);
            let row = row(client("pyopencl"), &found);
            assert_eq!(row.is_empty, !row.reasons.is_empty() && found.differences.is_empty());
            row.reasons.is_empty()
        };
        assert!(judged(|_| {}));
        assert!(!judged(|found| found.exit = Some(1)));
        assert!(!judged(|found| found.exit = None));
        assert!(!judged(|found| found.late = true));
        assert!(!judged(|found| found.dispatches = 399));
        assert!(!judged(|found| found.processes = 0));
        assert!(!judged(|found| found.coverage = "inconclusive".to_owned()));
        assert!(!judged(|found| drop(
            found.differences.insert("copies".to_owned(), "one".to_owned())
        )));
    }

    #[test]
    fn tests_may_fail_but_tracer_may_not() {
        let ended = |code| {
            let found = Found {
                exit: Some(code),
                ..equal()
            };
            row(client("rocrand tests"), &found).reasons.is_empty()
        };
        assert!(ended(1) && ended(139));
        assert!(OWN_FAILURES.into_iter().all(|code| !ended(code)));
    }

    #[test]
    fn what_is_demanded_of_a_program_that_rings_doorbells_itself() {
        let client = client("tinygrad DEV=AMD");
        let mut found = Found {
            coverage: "fail".to_owned(),
            exit: Some(NOT_PROBED),
            ..equal()
        };
        assert!(!row(client, &found).reasons.is_empty());
        found.by_path.insert("unseen".to_owned(), Some(found.dispatches));
        // The parts of the comparison are those of doorbells.
        found.differences.insert("dispatches".to_owned(), "path".to_owned());
        assert_eq!(row(client, &found).reasons, [""; 0]);
        found.taken = Some("a packet".to_owned());
        assert!(!row(client, &found).reasons.is_empty());
        found.taken = None;
        found.coverage = "pass".to_owned();
        assert!(!row(client, &found).reasons.is_empty());
    }

    #[test]
    fn what_is_demanded_of_a_program_with_pm4_commands() {
        let client = client("tinygrad DEV=AMD, PM4");
        let unknown = || Found {
            dispatches: 0,
            pm4_dispatches: 28,
            total: None,
            by_path: ["doorbell", "ring", "thunk", "unseen"]
                .map(|path| (path.to_owned(), None))
                .into(),
            coverage: "inconclusive".to_owned(),
            exit: Some(NOT_PROBED),
            ..equal()
        };
        assert_eq!(row(client, &unknown()).reasons, [""; 0]);
        let judged = |change: fn(&mut Found)| {
            let mut found = unknown();
            change(&mut found);
            row(client, &found).reasons.is_empty()
        };
        assert!(!judged(|found| found.pm4_dispatches = 0));
        assert!(!judged(|found| found.total = Some(0)));
        assert!(!judged(|found| {
            found.by_path.insert("unseen".to_owned(), Some(0));
        }));
        assert!(!judged(|found| found.coverage = "pass".to_owned()));
        assert!(!judged(|found| found.coverage = "fail".to_owned()));
        assert!(!judged(|found| found.losses = 1));
        assert!(!judged(|found| found.exit = Some(0)));
    }
}
