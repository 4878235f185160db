//! docs/events.md matches the schema.

use std::fs;
use std::path::Path;

use tracer_store::schema_markdown;

#[test]
fn events_md_is_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/events.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, schema_markdown()).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == schema_markdown(),
        "docs/events.md is out of date: UPDATE_DOCS=1 cargo test -p tracer-store docs"
    );
}
