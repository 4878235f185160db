//! Tests that the JSON schemas in docs/ match the structs, that docs/policies.md shows every key, and that docs/metrics.md matches
//! the catalogue.

use std::{collections::BTreeSet, fs, path::Path};

use schemars::{JsonSchema, schema_for};
use serde_json::Value;
use tracer_core::diff::{Diff, Table};
use tracer_core::metrics;
use tracer_core::verify::{Policy, Verdict};

fn docs(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

fn is(name: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(docs(name), expected).expect("docs/ is there");
    }
    let found = fs::read_to_string(docs(name)).unwrap_or_default();
    assert!(
        found == expected,
        "docs/{name} is out of date: UPDATE_DOCS=1 cargo test -p tracer-core --test docs"
    );
}

fn is_schema_of<T: JsonSchema>(name: &str) {
    is(
        name,
        &(serde_json::to_string_pretty(&schema_for!(T)).expect("a schema is JSON") + "\n"),
    );
}

#[test]
fn metrics_md_is_the_catalogue() {
    is("metrics.md", &metrics::markdown());
}

#[test]
fn the_policy_schema_is_that_of_policies() {
    is_schema_of::<Policy>("policy.schema.json");
}

#[test]
fn the_verdict_schema_is_that_of_verdicts() {
    is_schema_of::<Verdict>("verdict.schema.json");
}

#[test]
fn the_diff_schema_is_that_of_diffs() {
    is_schema_of::<Diff>("diff.schema.json");
}

#[test]
fn diff_md_describes_every_figure() {
    let text = fs::read_to_string(docs("diff.md")).expect("docs/diff.md is there");
    for table in Table::ALL {
        let name: &str = table.into();
        for figure in table.figures() {
            let line = format!("| {name} | `{}` | {} |\n", figure.name, figure.meaning);
            assert!(text.contains(&line), "docs/diff.md lacks {line}");
        }
    }
}

/// Collects the names of all properties of a schema.
fn keys(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                into.extend(properties.keys().cloned());
            }
            fields.values().for_each(|value| keys(value, into));
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

/// Returns the TOML blocks of docs/policies.md.
fn examples() -> Vec<String> {
    let text = fs::read_to_string(docs("policies.md")).expect("docs/policies.md is there");
    let blocks = text.split("```toml\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn policies_md_shows_every_key_in_policies_that_can_be_used() {
    let examples = examples();
    for example in &examples {
        Policy::parse(example).unwrap_or_else(|error| panic!("{error} in\n{example}"));
    }
    let mut all = BTreeSet::new();
    keys(&serde_json::to_value(schema_for!(Policy)).unwrap(), &mut all);
    for key in all {
        let shown = |example: &String| {
            example.lines().any(|line| {
                line.starts_with(&format!("{key} ="))
                    || line.contains(&format!(".{key}]"))
                    || line == format!("[{key}]")
            })
        };
        assert!(examples.iter().any(shown), "docs/policies.md has no example of `{key}`");
    }
}
