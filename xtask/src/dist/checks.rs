//! The licences of everything that is in the programs, known attacks on it, and the list of it.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Release;
use crate::cmd;
use crate::project::Project;
use crate::setup;

/// An address that no computer has.
const DATABASE: &str = "https://database.invalid/advisory-db";

/// Checks the licences and origins of the workspace's crates; and against the database of advisories that $ADVISORY_DB names, if it does.
pub fn licences(project: &Project) -> Result<()> {
    let config = project.root().join("packaging/deny.toml");
    let deny = |config: &Path| {
        let mut deny = crate::cargo::plain_with(project, setup::cargo_deny(project).program());
        deny.args(["--workspace", "--config"])
            .arg(config)
            .args(["check", "--hide-inclusion-graph"]);
        deny
    };
    cmd::run(deny(&config).args(["licenses", "bans", "sources"]))?;
    let Some(database) = env::var_os("ADVISORY_DB").filter(|database| !database.is_empty()) else {
        eprintln!("==> advisories are not checked: ADVISORY_DB names no copy of their database");
        return Ok(());
    };
    let folder = project.target().join("dist-advisories");
    cmd::remove_all(&folder)?;
    fs::create_dir_all(&folder)?;
    let database =
        fs::canonicalize(&database).with_context(|| format!("ADVISORY_DB: cannot find {}", database.display()))?;
    let own = format!(
        "[advisories]\ngit-fetch-with-cli = true\ndb-path = {:?}\ndb-urls = [\"{DATABASE}\"]",
        folder.join("databases")
    );
    let with_database = folder.join("deny.toml");
    fs::write(
        &with_database,
        fs::read_to_string(&config)?.replace("[advisories]", &own),
    )?;
    // It takes a database from an address with a host only. git fetches from the copy instead.
    let mut check = deny(&with_database);
    check
        .arg("advisories")
        .env("GIT_CONFIG_COUNT", "1")
        .env(
            "GIT_CONFIG_KEY_0",
            format!("url.file://{}.insteadOf", database.display()),
        )
        .env("GIT_CONFIG_VALUE_0", DATABASE);
    cmd::run(&mut check)
}

/// Writes the list of the crates that `tracer` is built of, as CycloneDX has it. Those of its eBPF programs are not in this workspace.
pub fn parts(project: &Project, release: &Release) -> Result<()> {
    // The lister writes next to the manifest of each crate, so it works in a copy.
    let copy = project.target().join("dist-parts");
    cmd::remove_all(&copy)?;
    let mut checkout = Command::new("git");
    checkout
        .current_dir(project.root())
        .args(["checkout-index", "--all"])
        .arg(format!("--prefix={}/", copy.display()));
    cmd::run(&mut checkout)?;
    let name = format!("tracer-{}.cdx", release.version);
    let mut list = crate::cargo::plain_with(project, setup::cargo_cyclonedx(project).program());
    list.current_dir(copy.join("tracer-cli"))
        .args(["cyclonedx", "--format", "json", "--target", "x86_64-unknown-linux-gnu"])
        .args(["--override-filename", &name])
        .env("SOURCE_DATE_EPOCH", &release.time);
    cmd::run(&mut list)?;
    let text = fs::read_to_string(copy.join("tracer-cli").join(format!("{name}.json")))?;
    let text = text.replace(&copy.display().to_string(), "/tracer");
    fs::write(release.out.join(format!("{name}.json")), text)?;
    cmd::remove_all(&copy)
}
