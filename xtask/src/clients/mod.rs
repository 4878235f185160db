//! Programs of others on the simulated GPU: downloads them, records each, compares the trace with the truth log, and documents it.

mod document;
mod folder;
mod judge;
mod roots;
mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use self::document::{Document, Row};
use self::judge::Found;
use self::roots::Root;
use self::table::{CLIENTS, Client};
use crate::build::{self, Profile};
use crate::cmd;
use crate::project::Project;
use crate::simulated;

/// The folder of the programs' scripts, and where programs see it.
const SCRIPTS: (&str, &str) = ("tests/e2e/clients", "/clients");

/// The variables that every program has, beside HOME: each run has an empty folder of its own.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("PATH", "/usr/bin:/bin"),
    ("LC_ALL", "C.UTF-8"),
    // The scripts of these packages would link the libraries from here to their usual place.
    (
        "LD_LIBRARY_PATH",
        "/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/lapack",
    ),
];

/// The name of the folder of runs, below cargo's target folder.
const RUNS: &str = "clients";

/// The error message without the right to record.
const NO_ROOT: &str = "recording needs root: run `cargo xtask clients` as root";

/// Which programs.
#[derive(Args)]
pub struct Clients {
    /// Only these programs; without any, all that need not wait for something.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only the selection that is part of `cargo xtask test`, without changes to the document.
    #[arg(long, conflicts_with = "names")]
    quick: bool,
    /// Only download, so that a later run needs no network.
    #[arg(long)]
    download: bool,
    /// List the programs and where they run, and run nothing.
    #[arg(long)]
    list: bool,
}

/// Runs the programs. Fails if one of them does not show what it must.
pub fn run(project: &Project, wanted: &Clients) -> Result<ExitCode> {
    let selected = select(&wanted.names, wanted.quick)?;
    if wanted.list {
        list(project, &selected);
        return Ok(ExitCode::SUCCESS);
    }
    if !wanted.download && !cmd::is_root()? {
        // Asks for the password now, when the user sees the prompt.
        cmd::require("sudo", NO_ROOT)?;
        cmd::run(Command::new("sudo").arg("--validate")).context(NO_ROOT)?;
    }
    for (root, _) in selected.iter().flat_map(|client| client.on) {
        folder::make(project, root)?;
    }
    if wanted.download {
        return Ok(ExitCode::SUCCESS);
    }
    build::run(project, Profile::Dev)?;
    let mut count = 0;
    for client in selected {
        let rows = compare_at_all(project, client)?;
        count += rows.iter().filter(|row| !row.reasons.is_empty()).count();
        if !wanted.quick {
            Document::update(project, rows)?;
        }
    }
    ensure!(count == 0, "{count} runs do not show what they must: see above");
    Ok(ExitCode::SUCCESS)
}

/// Runs the selection that is part of the tests.
pub fn quick(project: &Project) -> Result<()> {
    let quick = Clients {
        names: Vec::new(),
        quick: true,
        download: false,
        list: false,
    };
    run(project, &quick).map(drop)
}

/// Downloads what [`llama`] needs, unless it is there.
pub fn download_llama(project: &Project) -> Result<()> {
    folder::make(project, &roots::ROCBLAS)
}

/// Returns the command of llama-bench with these arguments, on a small model and a simulated GPU; `programs` is the folder of the
/// simulator. Its kernels have no effect.
pub fn llama(project: &Project, programs: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs.join("kfd-sim"));
    command.arg("--root").arg(folder::path(project, &roots::ROCBLAS));
    let scripts = project.root().join(SCRIPTS.0);
    command
        .arg("--bind")
        .arg(format!("{}:{}", scripts.display(), SCRIPTS.1));
    command.args(["--asic", simulated::ASIC, "--"]);
    command.args(["/usr/bin/python3", "/clients/llama.py"]).args(arguments);
    command.envs(ENVIRONMENT).env("HOME", "/tmp");
    command
}

fn select(names: &[String], quick: bool) -> Result<Vec<&'static Client>> {
    if let Some(unknown) = names
        .iter()
        .find(|name| !CLIENTS.iter().any(|client| client.name == **name))
    {
        bail!("there is no program {unknown}: `cargo xtask clients --list` prints the names");
    }
    let is_wanted = |client: &&Client| {
        if names.is_empty() {
            client.waits.is_none() && (client.quick || !quick)
        } else {
            names.iter().any(|name| name == client.name)
        }
    };
    Ok(CLIENTS.iter().filter(is_wanted).collect())
}

fn list(project: &Project, clients: &[&Client]) {
    for client in clients {
        for (root, asic) in client.on {
            let state = if folder::is_ready(project, root) {
                "there"
            } else {
                "not downloaded"
            };
            let notes = [
                client.quick.then(|| "quick".to_owned()),
                client.waits.map(|what| format!("waits for {what}")),
            ];
            let notes: String = notes.into_iter().flatten().map(|note| format!(", {note}")).collect();
            println!(
                "{}: Debian {}, {} x {asic}, {state}{notes}",
                client.name, root.suite, client.gpus
            );
        }
    }
}

/// Runs a program at each of its places.
fn compare_at_all(project: &Project, client: &Client) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &(root, asic) in client.on {
        let began = Instant::now();
        let row = compare(project, client, root, asic)?;
        let seconds = began.elapsed().as_secs_f64();
        let place = format!(
            "{} on {}, {asic}: {} dispatches",
            client.name, row.runtime, row.dispatches
        );
        match row.reasons.join("; ").as_str() {
            "" => eprintln!("==> equal, {seconds:.1} s: {place}"),
            reasons => eprintln!("==> NOT as it must be, {seconds:.1} s: {place}: {reasons}"),
        }
        rows.push(row);
    }
    Ok(rows)
}

fn compare(project: &Project, client: &Client, root: &Root, asic: &str) -> Result<Row> {
    let scripts = project.root().join(SCRIPTS.0);
    let simulator = [
        "--root".to_owned(),
        folder::path(project, root).display().to_string(),
        "--bind".to_owned(),
        format!("{}:{}", scripts.display(), SCRIPTS.1),
        "--asic".to_owned(),
        asic.to_owned(),
        "--gpus".to_owned(),
        client.gpus.to_string(),
    ];
    let name: String = client
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let folder = project.target().join(RUNS).join(format!("{name}-{}-{asic}", root.name));
    let environment: BTreeMap<&str, &str> = ENVIRONMENT.iter().chain(client.environment).copied().collect();
    let wanted = serde_json::json!({
        "folder": folder,
        "simulator": simulator,
        "api": client.api,
        "environment": environment,
        "command": client.command,
        "limit": client.limit,
    });
    let mut command = as_root(project)?;
    command.arg(wanted.to_string()).envs(project.variables());
    let found = cmd::read(&mut command).and_then(|found| Ok(serde_json::from_str::<Found>(&found)?));
    if let Some(found) = found.as_ref().ok().filter(|found| found.recordings > 1) {
        let times = found.recordings;
        eprintln!(
            "==> {}: recorded {times} times, as the machine was too busy",
            client.name
        );
    }
    let place = (folder::version(project, root, client.package)?, runtime(project, root)?);
    let mut row = match found {
        Ok(found) => judge::row(client, &found),
        Err(error) => Row {
            reasons: vec![format!("{error:#}")],
            is_empty: true,
            ..Row::default()
        },
    };
    row.program = client.name.to_owned();
    (row.version, row.runtime) = place;
    row.asic = asic.to_owned();
    row.gpus = client.gpus;
    Ok(row)
}

/// Returns the command that records and compares, under sudo if this program does not run as root.
fn as_root(project: &Project) -> Result<Command> {
    let program = project.bin_dir().join("compare-client");
    if cmd::is_root()? {
        return Ok(Command::new(program));
    }
    let variables = project.variables().map(|(name, _)| name).join(",");
    let mut sudo = Command::new("sudo");
    sudo.arg(format!("--preserve-env={variables},TRACER_PAUSE_LIMIT"))
        .arg(program);
    Ok(sudo)
}

/// Returns the release of AMD's runtime in a folder, without Debian's revision.
fn runtime(project: &Project, root: &Root) -> Result<String> {
    let version = folder::version(project, root, "libhsa-runtime64-1")?;
    let release = version.split(['+', '-', '~']).next().unwrap_or(&version);
    Ok(format!("ROCr {release}"))
}
