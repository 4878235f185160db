//! `tracer verify` and its verdicts.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::place;

fn verify(arguments: &[&str], trace: &Path) -> Output {
    Command::new(place::programs().join("tracer"))
        .arg("verify")
        .args(arguments)
        .arg(trace)
        .output()
        .expect("tracer runs")
}

/// Returns the exit code and the verdict.
#[must_use]
pub fn verdict(policy: &str, trace: &Path) -> (Option<i32>, Value) {
    let output = verify(&["--format", "json", "--policy", policy], trace);
    let said = String::from_utf8_lossy(&output.stderr);
    let verdict = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code(), verdict)
}

/// Returns the rules that did not pass, with their outcomes.
#[must_use]
pub fn amiss(verdict: &Value) -> BTreeMap<String, String> {
    let rules = verdict["rules"].as_array().expect("rules");
    let text = |rule: &Value, key: &str| rule[key].as_str().expect("a string").to_owned();
    rules
        .iter()
        .map(|rule| (text(rule, "rule"), text(rule, "outcome")))
        .filter(|(_, outcome)| outcome != "pass")
        .collect()
}

/// Returns one rule of a verdict.
#[must_use]
pub fn rule<'a>(verdict: &'a Value, name: &str) -> &'a Value {
    let rules = verdict["rules"].as_array().expect("rules");
    rules.iter().find(|rule| rule["rule"] == name).expect("the rule")
}
