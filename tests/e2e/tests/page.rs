//! The page of `tracer serve`, in a real browser.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::Value;
use tracer_core::summary::Capabilities;
use tracer_e2e::{
    browser::{Picture, Seen, open_page},
    running::{Program, Recorder, signal, wait_for},
    scenario::{Scenario, folder},
    truth::Truth,
};

use crate::serve::{address, get, serve};

/// The number of seconds of its own time that the page runs. It sends one request per second.
const SECONDS: u32 = 5;

/// `tracer serve`, which is killed when its test ends.
pub struct Served {
    recorder: Option<Recorder>,
    address: String,
}

impl Served {
    pub fn of(command: Command, folder: &Path) -> Self {
        let recorder = Recorder::of(command, folder);
        let address = address(&recorder);
        Self {
            recorder: Some(recorder),
            address,
        }
    }

    pub fn hears(&self, start: &str) {
        self.recorder.as_ref().expect("it runs").hears(start);
    }

    /// Opens the page in a browser.
    pub fn open(&self, folder: &Path, picture: Option<Picture<'_>>) -> Seen {
        open_page(folder, &format!("http://{}/", self.address), SECONDS, picture)
    }

    /// Waits until the data says that doorbells are watched, and counts this many dispatches. The recorder describes its probes every
    /// half second: a page that is opened earlier shows truthfully that nothing is watched yet.
    fn counts(&self, dispatches: u64) {
        wait_for("probes and dispatches", || {
            let live = self.live();
            let counted = live["totals"]["dispatches"].as_u64() >= Some(dispatches);
            (live["watched"]["doorbells"] == true && counted).then_some(())
        });
    }

    /// Returns the data that the page gets.
    pub fn live(&self) -> Value {
        serde_json::from_str(&get(&self.address, "/api/live", "").1).expect("JSON")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        signal(recorder.pid(), libc::SIGINT);
        let _ = recorder.wait();
    }
}

/// Returns the text between each `start` and the next `end`.
pub fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let parts = text.split(start).skip(1);
    parts
        .map(|part| part.split(end).next().expect("split gives one at least"))
        .collect()
}

/// Returns a table's rows below its heads: the class, and the text of each cell.
pub fn rows<'a>(seen: &'a Seen, table: &str) -> Vec<(&'a str, Vec<&'a str>)> {
    let tables = between(&seen.document, &format!("<table id=\"{table}\""), "</table>");
    let [table] = tables[..] else {
        panic!("{} tables {table}:\n{}", tables.len(), seen.document)
    };
    let bodies = between(table, "<tbody>", "</tbody>").into_iter();
    let rows = bodies.flat_map(|body| between(body, "<tr", "</tr>"));
    rows.map(|row| {
        let (attributes, cells) = row.split_once('>').expect("a row");
        let class = between(attributes, "class=\"", "\"")
            .first()
            .copied()
            .unwrap_or_default();
        let cells = between(cells, "<td", "</td>").into_iter();
        (
            class,
            cells.map(|cell| cell.split_once('>').expect("a cell").1).collect(),
        )
    })
    .collect()
}

/// Returns a number above the tables.
pub fn total(seen: &Seen, what: &str) -> u64 {
    let totals = between(&seen.document, "<div><b>", "</div>");
    let of = totals
        .iter()
        .find_map(|total| total.strip_suffix(what)?.strip_suffix("</b>"));
    let shown = of.unwrap_or_else(|| panic!("no {what} in {totals:?}"));
    shown
        .replace(',', "")
        .parse()
        .unwrap_or_else(|_| panic!("{what}: {shown}"))
}

/// Returns the page's statement about the whole.
fn state(seen: &Seen) -> &str {
    let states = between(&seen.document, "id=\"state\"", "</span>");
    states[0].split_once('>').expect("an element").1
}

/// Checks that the page logged no error, got responses, and sent requests to no other server.
fn all_is_well(seen: &Seen, served: &Served) {
    assert!(seen.console.is_empty(), "{:#?}", seen.console);
    let answers = between(&seen.document, "data-answers=\"", "\"");
    let answers = answers.first().and_then(|answers| answers.parse::<u32>().ok());
    // The first request comes at once. Others follow in the page's own time, if it repeats its request.
    assert!(
        answers.is_some_and(|answers| answers > 1),
        "{answers:?}:\n{}",
        seen.document
    );
    let own = format!("http://{}/", served.address);
    assert!(seen.requests.contains(&format!("{own}api/live")), "{:?}", seen.requests);
    assert!(
        seen.requests.iter().all(|url| url.starts_with(&own)),
        "{:?}",
        seen.requests
    );
    let live = served.live();
    let all = Capabilities::default().each().map(|(what, _)| what);
    let not_watched: Vec<&str> = all.into_iter().filter(|what| live["watched"][what] == false).collect();
    assert!(!not_watched.is_empty(), "{live}");
    let expected = format!(
        "SIMULATED GPU · 0 events lost · not watched: {}",
        not_watched.join(", ")
    );
    assert_eq!(state(seen), expected);
    // The rings are not watched: their part is unknown, and not 0.
    let paths = between(&seen.document, "<p id=\"paths\">", "</p>");
    assert_eq!(paths, ["100.0% doorbell, ? ring (not watched)"]);
}

#[test]
fn the_page_shows_the_truth() {
    let dir = folder();
    let scenario = Scenario::hip("trixie", "gfx1100", &["mixed"]);
    let mut command = serve(&["--stay", "--detail", "full", "--"]);
    command.args(scenario.simulated(dir.path()));
    let served = Served::of(command, dir.path());
    served.hears("ended      ");
    let seen = served.open(dir.path(), None);
    all_is_well(&seen, &served);
    let truth = Truth::read(&dir.path().join("truth.jsonl"));
    assert!(truth.dispatches() > 0 && !truth.queues.is_empty());
    assert_eq!(total(&seen, "dispatches since the start"), truth.dispatches());
    // All queues have been destroyed.
    assert_eq!(total(&seen, "queues"), 0);
    let queues = rows(&seen, "queues");
    let mut shown: Vec<(&str, &str, &str, u64)> = queues
        .iter()
        .map(|(class, cells)| {
            assert_eq!((*class, cells.last()), ("ended", Some(&"ended")), "{cells:?}");
            (
                cells[1],
                cells[2],
                cells[3],
                cells[6].replace(',', "").parse().expect("a number"),
            )
        })
        .collect();
    let live = served.live();
    let processes = live["processes"].as_array().expect("processes").iter();
    let comms: BTreeMap<u64, &str> = processes
        .filter_map(|process| Some((process["pid"].as_u64()?, process["comm"].as_str()?)))
        .collect();
    let numbers: Vec<[String; 2]> = truth
        .queues
        .iter()
        .map(|queue| {
            let comm = comms[&u64::from(queue.pid)];
            [format!("{comm} ({})", queue.pid), format!("gfx1100 ({})", queue.gpu_id)]
        })
        .collect();
    let mut expected: Vec<(&str, &str, &str, u64)> = truth
        .queues
        .iter()
        .zip(&numbers)
        .map(|(queue, [pid, gpu])| {
            let kernels = queue.packets.iter().filter(|packet| packet.kind == "kernel_dispatch");
            let kind = match queue.is_aql() {
                // The runtime's own queue has room for 64 packets; the queues that it creates for programs are larger.
                true if queue.ring_size == 64 * 64 => "compute-aql (internal)",
                true => "compute-aql",
                false => "sdma",
            };
            (pid.as_str(), gpu.as_str(), kind, kernels.count() as u64)
        })
        .collect();
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(shown, expected);
    let kernels = rows(&seen, "kernels");
    let sum: u64 = kernels
        .iter()
        .filter(|(class, _)| *class != "none")
        .map(|(_, cells)| cells[2].replace(',', "").parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(sum, truth.dispatches(), "{kernels:?}");
}

#[test]
fn the_page_of_a_program_that_runs_moves() {
    let program = Program::steady("sid", "gfx942", &[]);
    let pid = program.pid().to_string();
    let served = Served::of(serve(&["--detail", "full", "-p", &pid]), program.dir.path());
    let shown = |least| {
        served.counts(least);
        let seen = served.open(program.dir.path(), None);
        all_is_well(&seen, &served);
        total(&seen, "dispatches since the start")
    };
    let first = shown(100);
    let second = shown(first + 500);
    assert!(first >= 100 && second >= first + 500, "{first}, then {second}");
}

/// Checks the picture in docs/serve.md. `UPDATE_DOCS=1` takes it again.
#[test]
fn the_picture_of_the_docs_is_there_and_small() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let picture = docs.join("serve.png");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let dir = folder();
        // More rounds than it has time for. It exits when it is no longer watched.
        let workload = ["mixed", "--elements", "4096", "-n", "100000"];
        let mut command = serve(&["--detail", "full", "--api", "all", "--"]);
        command.args(Scenario::hip("trixie", "gfx1100", &workload).simulated(dir.path()));
        let served = Served::of(command, dir.path());
        wait_for("a history", || {
            let live = served.live();
            let seconds = live["totals"]["history"].as_array().into_iter().flatten();
            let busy = seconds.filter(|dispatches| dispatches.as_u64() > Some(0)).count();
            (busy > 25).then_some(())
        });
        let wanted = Picture {
            path: &picture,
            size: (1240, 1700),
            scale: 1.0,
        };
        all_is_well(&served.open(dir.path(), Some(wanted)), &served);
    }
    let bytes = std::fs::read(&picture).expect("UPDATE_DOCS=1 makes it");
    assert!(
        bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.len() < 200_000,
        "{} bytes",
        bytes.len()
    );
    let text = std::fs::read_to_string(docs.join("serve.md")).expect("the document");
    assert!(text.contains("](serve.png)"));
}

/// Tests the harness: it detects a faulty page.
#[test]
fn a_page_that_complains_and_asks_elsewhere_is_noticed() {
    let dir = folder();
    let page = dir.path().join("page.html");
    // No process listens on port 1.
    let text =
        "<p>shown</p><script>fetch('http://127.0.0.1:1/else').catch(() => {}); throw new Error('wrong');</script>";
    std::fs::write(&page, text).expect("it can be written");
    let seen = open_page(dir.path(), &format!("file://{}", page.display()), SECONDS, None);
    assert!(seen.document.contains("<p>shown</p>"), "{}", seen.document);
    assert!(
        seen.console.iter().any(|line| line.contains("wrong")),
        "{:?}",
        seen.console
    );
    assert!(
        seen.requests.contains(&"http://127.0.0.1:1/else".to_owned()),
        "{:?}",
        seen.requests
    );
}
