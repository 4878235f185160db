//! Servers of metrics: each by the file that users start from, beside a program in another container.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::engines::{Engines, get, wait_for};
use super::{BASE, PROGRAM, Trial, WORKLOAD, rows};

/// A token for the metrics, of as many characters as are needed at least.
const TOKEN: &str = "0123456789abcdef";

impl Trial {
    /// The unit of Podman: what quadlet makes of it runs, and counts what the simulator logs.
    pub fn quadlet(&self, engines: &Engines) -> Result<()> {
        let units = format!("QUADLET_UNIT_DIRS={}", self.path("context"));
        let unit = engines.run(&["env", &units, "/usr/libexec/podman/quadlet", "-dryrun"])?;
        let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart="));
        // These two need systemd.
        let of_systemd = |word: &&str| word.starts_with("--cidfile=") || *word == "--cgroups=split";
        let words: Vec<&str> = start
            .context("no command in the unit")?
            .split(' ')
            .filter(|word| !of_systemd(word))
            .collect();
        engines.run(&words)?;
        self.serves(engines, "podman", "tracer-serve", None)?;
        engines.run(&["podman", "stop", "tracer-serve"]).map(drop)
    }

    /// The file for Kubernetes, as Podman understands it: its pod is one that serves.
    pub fn pod(&self, engines: &Engines) -> Result<()> {
        let daemonset = fs::read_to_string(self.folder.join("context/daemonset.yaml"))?;
        let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: tracer-token\nstringData:\n  token: ";
        fs::write(
            self.folder.join("pod.yaml"),
            format!("{secret}{TOKEN}\n---\n{daemonset}"),
        )?;
        let file = self.path("pod.yaml");
        engines.run(&["podman", "kube", "play", "--network=none", &file])?;
        self.serves(engines, "podman", "tracer-pod-tracer", Some(TOKEN))?;
        engines.run(&["podman", "kube", "down", &file]).map(drop)
    }

    /// The file for Docker; and `record -- docker run`, which sees nothing of a program that a daemon starts, and says so.
    pub fn compose(&self, engines: &Engines) -> Result<()> {
        engines.run(&["docker", "import", &self.path("base.tar"), BASE])?;
        let file = self.path("context/compose.yaml");
        engines.run(&["docker", "compose", "-f", &file, "up", "--build", "-d"])?;
        self.serves(engines, "docker", "context-tracer-1", None)?;
        engines.run(&["docker", "compose", "-f", &file, "down"])?;
        let (tracer, trace) = (self.path("root/usr/bin/tracer"), self.path("out/docker.trace"));
        let record = [&tracer, "record", "-o", &trace, "--", "docker", "run"];
        let said = engines.run(&[&record[..], &PROGRAM, &["tracer"], &WORKLOAD].concat())?;
        ensure!(said.contains("record with `-a`"), "tracer says: {said}");
        ensure!(
            self.recorded(engines, "out/docker.trace")?.is_empty(),
            "a daemon's program was recorded"
        );
        Ok(())
    }

    /// Runs a program in a container, while a server in another one counts its dispatches.
    fn serves(&self, engines: &Engines, engine: &str, server: &str, token: Option<&str>) -> Result<()> {
        let process = engines.process(engine, server)?;
        wait_for("health", || {
            Ok(get(process, "/healthz", None)
                .ok()
                .filter(|page| page.ends_with("\r\n\r\nok\n")))
        })?;
        if token.is_some() {
            let page = get(process, "/metrics", None)?;
            ensure!(page.starts_with("HTTP/1.1 401"), "without its token: {page}");
        }
        // The list of paused processes outlives the container.
        let pinned = engines.run(&["ls", "/sys/fs/bpf/tracer"])?;
        ensure!(pinned.contains("pauses-"), "/sys/fs/bpf/tracer has {pinned:?}");
        let before = self.logged()?;
        self.program(engines, engine, &WORKLOAD)?;
        let mut logged = self.logged()?;
        logged.retain(|row| !before.contains(row));
        let (expected, processes) = (logged.len() as f64, rows::processes(&logged));
        let mut counted = 0.0;
        wait_for(&format!("{expected} dispatches in the metrics"), || {
            counted = total(&get(process, "/metrics", token)?, &processes);
            Ok((counted >= expected).then_some(()))
        })?;
        ensure!(
            expected > 0.0 && counted == expected,
            "{counted} dispatches are counted of {expected}"
        );
        eprintln!("==> {server}: all of {expected} dispatches are counted");
        Ok(())
    }
}

/// Returns the dispatches that metrics count on all queues of these processes.
fn total(metrics: &str, processes: &BTreeSet<u64>) -> f64 {
    let of_them = |line: &&str| {
        let id = |process| line.contains(&format!("kfd_process_id=\"{process}\""));
        line.starts_with("tracer_dispatches_total{") && processes.iter().any(id)
    };
    let values = metrics.lines().filter(of_them);
    values
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}
