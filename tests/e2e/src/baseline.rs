//! Numbers that a change must not make worse: tests/e2e/baselines.json.

use std::{
    collections::BTreeMap,
    env, fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// How much a number may exceed its baseline. The numbers hardly depend on the machine, but code that nobody touched may be
/// compiled differently after a change elsewhere.
const MARGIN: f64 = 0.1;

/// Numbers by their names.
type Numbers = BTreeMap<String, u64>;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("baselines.json")
}

/// Compares numbers with a section of the file, by their names, and prints each. Returns whether the file has the section.
///
/// With `UPDATE_BASELINES=1` in the environment, it writes them instead.
///
/// # Panics
/// Panics if a number is larger than its baseline and the margin, if one of both has no counterpart, or if the file is not readable.
pub fn compare(section: &str, found: &Numbers) -> bool {
    // Tests of one program may be threads.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read_to_string(path()).expect("tests/e2e/baselines.json");
    let mut all: BTreeMap<String, Numbers> = serde_json::from_str(&text).expect("numbers by section and name");
    if env::var_os("UPDATE_BASELINES").is_some() {
        all.insert(section.to_owned(), found.clone());
        let text = serde_json::to_string_pretty(&all).expect("it is JSON");
        fs::write(path(), text + "\n").expect("it can be written");
        return true;
    }
    let Some(baseline) = all.get(section) else {
        println!("{section}: no baseline");
        return false;
    };
    assert!(
        baseline.keys().eq(found.keys()),
        "{section}: other names than in baselines.json: {found:?}"
    );
    let mut worse = Vec::new();
    for (name, &number) in found {
        let before = baseline.get(name).copied().unwrap_or(0);
        let change = number as f64 / before as f64 - 1.0;
        println!(
            "{section}: {name}: {number}, baseline {before} ({:+.1} %)",
            change * 100.0
        );
        if change < -MARGIN {
            println!("{section}: {name} is better: run the test with UPDATE_BASELINES=1, so that it stays so");
        }
        if change > MARGIN {
            worse.push(format!("{name}: {number}, baseline {before}"));
        }
    }
    assert!(
        worse.is_empty(),
        "{section}: worse than the baseline by more than {} %: {worse:?}; if that is worth it, run the test with \
         UPDATE_BASELINES=1",
        MARGIN * 100.0
    );
    true
}
