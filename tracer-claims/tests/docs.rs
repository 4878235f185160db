//! Tests that the JSON schema of reports on claims in docs/ matches the struct.

use std::{fs, path::Path};

use schemars::schema_for;

#[test]
fn the_claims_schema_is_that_of_reports_on_claims() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/claims.schema.json");
    let schema = schema_for!(tracer_claims::Report);
    let expected = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).expect("docs/ is there");
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == expected,
        "docs/claims.schema.json is out of date: UPDATE_DOCS=1 cargo test -p tracer-claims --test docs"
    );
}
