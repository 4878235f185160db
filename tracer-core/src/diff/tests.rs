use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::analysis::Analysis;
use crate::sample::{self, EVERYTHING};
use crate::summary::{Capabilities, Summary};
use crate::tables::{self, ApiCall, Dispatch, Fact, GpuTime, Ioctl, Loss, OtherPacket, PacketKind};
use crate::verify::Outcome;

/// A recording for tests: what ran, and what was seen of it.
#[derive(Clone, Debug)]
struct Recorded {
    facts: Vec<Fact>,
    watched: Capabilities,
    finished: bool,
    simulated: bool,
    unread: BTreeSet<tables::Table>,
    layers: BTreeSet<String>,
}

/// Returns a recording in which each kernel was dispatched so many times, each by a call that took so long to the doorbell.
fn recorded(kernels: &[(&str, u64)], launch_ns: u64) -> Recorded {
    let mut facts = vec![Fact::Queue(sample::queue(0))];
    let mut time = 10_000;
    let all = kernels
        .iter()
        .flat_map(|&(kernel, count)| (0..count).map(move |_| kernel));
    for (call, kernel) in (0..).zip(all) {
        facts.push(Fact::ApiCall(ApiCall {
            dispatches: 1,
            ..sample::api_call(call, (time, time + launch_ns + 10))
        }));
        facts.push(Fact::Dispatch(Dispatch {
            kernel: Some(Arc::from(kernel)),
            kernel_object: 64 + kernel.len() as u64,
            api_call: Some(call),
            ..sample::dispatch(call, time + launch_ns)
        }));
        facts.push(Fact::Doorbell(sample::doorbell(call, time + launch_ns)));
        time += 10_000;
    }
    let count = kernels.iter().map(|(_, count)| count).sum();
    facts.push(Fact::Queue(sample::queue(count)));
    Recorded {
        facts,
        watched: EVERYTHING,
        finished: true,
        simulated: false,
        unread: BTreeSet::new(),
        layers: BTreeSet::from(["hip".to_owned()]),
    }
}

fn ioctl(name: &'static str, enter_ns: u64, ns: u64) -> Fact {
    Fact::Ioctl(Ioctl {
        tid: 9,
        ..sample::ioctl(name, (enter_ns, enter_ns + ns))
    })
}

fn barrier(index: u64) -> Fact {
    Fact::Packet(OtherPacket {
        kind: PacketKind::BarrierAnd,
        unread: None,
        ..sample::unread(index, 1, 5_000)
    })
}

impl Recorded {
    fn with(mut self, facts: impl IntoIterator<Item = Fact>) -> Self {
        self.facts.extend(facts);
        self
    }

    fn lost(self, source: &str) -> Self {
        let loss = Loss {
            source: source.to_owned(),
            time_ns: 1,
            count: 3,
        };
        self.with([Fact::Loss(loss)])
    }

    fn run(&self) -> Run {
        let (mut summary, mut analysis) = (Summary::new(self.watched), Analysis::default());
        for fact in &self.facts {
            summary.add(fact);
            analysis.add(fact);
        }
        summary.set_unread(self.unread.clone());
        let report = summary.finish(self.finished);
        Run::of(Recording {
            about: About {
                trace: "t.trace".to_owned(),
                whole_run: true,
                simulated: self.simulated.then(|| "sim".to_owned()),
                complete: report.complete,
                losses: report.losses.total,
                wall_ns: Some(1_000_000),
                ..About::default()
            },
            report: &report,
            answers: &analysis.finish(),
            finished: self.finished,
            watched: self.watched,
            layers: self.layers.clone(),
            gpus: vec![5],
            unread: &self.unread,
        })
    }
}

fn compared(before: &[Recorded], after: &[Recorded], thresholds: &[&str]) -> Diff {
    let runs = |side: &[Recorded]| side.iter().map(Recorded::run).collect::<Vec<_>>();
    let thresholds: Vec<Threshold> = thresholds.iter().map(|text| text.parse().unwrap()).collect();
    diff(&runs(before), &runs(after), &thresholds, 0.05)
}

fn one(before: &Recorded, after: &Recorded) -> Diff {
    compared(std::slice::from_ref(before), std::slice::from_ref(after), &[])
}

fn row<'a>(diff: &'a Diff, table: Table, name: &str) -> &'a RowDiff {
    let of = diff.tables.iter().find(|of| of.table == table).unwrap();
    let found = of.rows.iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {of:#?}"))
}

fn figure<'a>(diff: &'a Diff, table: Table, name: &str, figure: &str) -> &'a FigureDiff {
    let row = row(diff, table, name);
    row.figures.iter().find(|of| of.figure == figure).unwrap()
}

fn total<'a>(diff: &'a Diff, name: &str) -> &'a FigureDiff {
    figure(diff, Table::Total, "total", name)
}

fn values(figure: &FigureDiff) -> (Option<u64>, Option<u64>, Verdict) {
    (figure.before.values[0], figure.after.values[0], figure.verdict)
}

fn verdicts(diff: &Diff) -> BTreeMap<Verdict, usize> {
    let mut found = BTreeMap::new();
    let figures = diff
        .tables
        .iter()
        .flat_map(|table| &table.rows)
        .flat_map(|row| &row.figures);
    figures.for_each(|figure| *found.entry(figure.verdict).or_default() += 1);
    found
}

#[test]
fn counts_of_two_recordings_are_facts_and_times_have_no_verdict() {
    let before = recorded(&[("saxpy", 3), ("old", 1)], 100).with([ioctl("CREATE_QUEUE", 1_000, 50)]);
    let after = recorded(&[("saxpy", 5), ("new", 2)], 150).with([
        ioctl("CREATE_QUEUE", 1_000, 70),
        ioctl("CREATE_QUEUE", 2_000, 70),
        barrier(90),
    ]);
    let diff = one(&before, &after);
    assert_eq!(values(total(&diff, "dispatches")), (Some(4), Some(7), Verdict::Differs));
    assert_eq!(values(total(&diff, "doorbells")), (Some(4), Some(7), Verdict::Differs));
    assert_eq!(values(total(&diff, "barriers")), (Some(0), Some(1), Verdict::Differs));
    assert_eq!(
        values(total(&diff, "ioctls.time")),
        (Some(50), Some(140), Verdict::Untested)
    );
    let saxpy = figure(&diff, Table::Kernel, "saxpy", "dispatches");
    assert_eq!((saxpy.change, saxpy.relative), (Some(2.0), Some(2.0 / 3.0)));
    let launch = figure(&diff, Table::Kernel, "saxpy", "launch.p50");
    assert_eq!(
        (launch.change, launch.p, launch.verdict),
        (Some(50.0), None, Verdict::Untested)
    );
    let presence = |name| row(&diff, Table::Kernel, name).presence;
    let expected = [Presence::Both, Presence::Gone, Presence::New];
    assert_eq!(["saxpy", "old", "new"].map(presence), expected);
    // A kernel that was not there has no time, and was dispatched 0 times.
    let new = figure(&diff, Table::Kernel, "new", "dispatches");
    assert_eq!(
        (values(new), new.relative),
        ((Some(0), Some(2), Verdict::Differs), None)
    );
    let new = figure(&diff, Table::Kernel, "new", "launch.p50");
    assert_eq!(values(new), (None, Some(150), Verdict::Absent));
    let queue = "p0/gpu0/compute-aql/program/0";
    let barriers = figure(&diff, Table::Queue, queue, "barriers");
    assert_eq!(values(barriers), (Some(0), Some(1), Verdict::Differs));
    let calls = figure(&diff, Table::Api, "hipModuleLaunchKernel", "calls");
    assert_eq!(values(calls), (Some(4), Some(7), Verdict::Differs));
    let total = figure(&diff, Table::Api, "hipModuleLaunchKernel", "total");
    assert_eq!(values(total), (Some(4 * 110), Some(7 * 160), Verdict::Untested));
    let path = figure(&diff, Table::Path, "doorbell", "dispatches");
    assert_eq!(values(path), (Some(4), Some(7), Verdict::Differs));
    let layer = figure(&diff, Table::Layer, "ioctl queue", "total");
    assert_eq!(values(layer), (Some(50), Some(140), Verdict::Untested));
    assert_eq!((diff.method.can_test(), diff.method.runs_needed), (false, 4));
    assert!(diff.notes[0].contains("4 runs on each side"), "{:?}", diff.notes);
}

#[test]
fn what_a_side_did_not_watch_is_no_difference() {
    let whole = recorded(&[("saxpy", 3)], 100).with([ioctl("CREATE_QUEUE", 1_000, 50)]);
    let mut blind = recorded(&[], 100);
    blind.watched = Capabilities {
        packets: true,
        doorbells: true,
        code_objects: true,
        ..Capabilities::default()
    };
    blind.layers.clear();
    let diff = one(&whole, &blind);
    for (table, name, of) in [
        (Table::Total, "total", "ioctls"),
        (Table::Total, "total", "calls"),
        (Table::Total, "total", "launch.p50"),
        (Table::Ioctl, "CREATE_QUEUE", "calls"),
        (Table::Ioctl, "CREATE_QUEUE", "p50"),
        (Table::Api, "hipModuleLaunchKernel", "calls"),
        (Table::Layer, "hip submit", "calls"),
        (Table::Layer, "ioctl queue", "total"),
    ] {
        let found = figure(&diff, table, name, of);
        assert_eq!(
            (found.after.values[0], found.change, found.verdict),
            (None, None, Verdict::Unknown),
            "{name} {of}"
        );
        assert!(
            found.why.as_ref().is_some_and(|why| why.starts_with("after: ")),
            "{found:?}"
        );
    }
    // It recorded calls of another library.
    let mut other = recorded(&[], 100);
    other.layers = BTreeSet::from(["hsa".to_owned()]);
    let calls = |diff: &Diff| values(figure(diff, Table::Api, "hipModuleLaunchKernel", "calls"));
    assert_eq!(calls(&one(&whole, &other)), (Some(3), None, Verdict::Unknown));
    other.layers.insert("hip".to_owned());
    assert_eq!(calls(&one(&whole, &other)), (Some(3), Some(0), Verdict::Differs));
    // A row that the other side could not have seen is not gone.
    assert_eq!(row(&diff, Table::Ioctl, "CREATE_QUEUE").presence, Presence::Unknown);
    // It watched the kernels.
    let kernel = figure(&diff, Table::Kernel, "saxpy", "dispatches");
    assert_eq!(values(kernel), (Some(3), Some(0), Verdict::Differs));
    let path = figure(&diff, Table::Path, "ring", "dispatches");
    assert_eq!((path.before.values[0], path.verdict), (Some(0), Verdict::Unknown));
}

#[test]
fn losses_make_what_they_hide_unsure() {
    let before = recorded(&[("saxpy", 3)], 100);
    let after = recorded(&[("saxpy", 2)], 100);
    let found = |after: &Recorded| {
        let diff = one(&before, after);
        [
            total(&diff, "dispatches").verdict,
            figure(&diff, Table::Kernel, "saxpy", "dispatches").verdict,
            figure(&diff, Table::Api, "hipModuleLaunchKernel", "calls").verdict,
        ]
    };
    assert_eq!(found(&after), [Verdict::Differs; 3]);
    let unsure = Verdict::Unsure;
    assert_eq!(
        found(&after.clone().lost("doorbell-ring")),
        [unsure, unsure, Verdict::Differs]
    );
    assert_eq!(
        found(&after.clone().lost("code-object-ring")),
        [Verdict::Differs, unsure, Verdict::Differs]
    );
    assert_eq!(
        found(&after.clone().lost("api-ring")),
        [Verdict::Differs, Verdict::Differs, unsure]
    );
    assert_eq!(found(&after.clone().lost("reserve-ring")), [Verdict::Differs; 3]);
    assert_eq!(found(&after.clone().lost("store")), [unsure; 3]);
    let mut killed = after.clone();
    killed.finished = false;
    assert_eq!(found(&killed), [unsure; 3]);
    let mut damaged = after;
    damaged.unread.insert(tables::Table::Dispatches);
    let unknown = Verdict::Unknown;
    assert_eq!(found(&damaged), [unknown, unknown, Verdict::Differs]);
}

#[test]
fn times_that_were_measured_in_different_ways_are_not_compared() {
    let real = recorded(&[("saxpy", 3)], 100).with([ioctl("CREATE_QUEUE", 1_000, 50)]);
    let launch = |diff: &Diff| figure(diff, Table::Kernel, "saxpy", "launch.p50").verdict;
    let mut simulated = real.clone();
    simulated.simulated = true;
    let diff = one(&real, &simulated);
    assert_eq!(
        (launch(&diff), total(&diff, "dispatches").verdict),
        (Verdict::Unknown, Verdict::Equal)
    );
    assert_eq!(
        figure(&diff, Table::Ioctl, "CREATE_QUEUE", "p50").verdict,
        Verdict::Unknown
    );
    assert_eq!(launch(&one(&simulated, &simulated)), Verdict::Equal);
    // Probes on more functions, or on reserves, cost time in the calls around them.
    let mut more = real.clone();
    more.layers.insert("hsa".to_owned());
    let diff = one(&real, &more);
    assert_eq!(
        (launch(&diff), total(&diff, "calls").verdict),
        (Verdict::Unknown, Verdict::Equal)
    );
    let why = figure(&diff, Table::Api, "hipModuleLaunchKernel", "p50").why.clone();
    assert_eq!(
        why.as_deref(),
        Some("recorded in different ways: probes on hip and hsa, --detail full; probes on hip, --detail full")
    );
    let mut fewer = real.clone();
    fewer.watched.reserves = false;
    assert_eq!(launch(&one(&real, &fewer)), Verdict::Unknown);
}

#[test]
fn a_gpu_time_needs_every_dispatch_and_its_total_counts() {
    let time = |index: u64, ns: u64| {
        Fact::GpuTime(GpuTime {
            queue: 0,
            index,
            pid: 7,
            time_ns: 9_000_000,
            kernel_object: 64 + 5,
            kernel: Some(Arc::from("saxpy")),
            gpu_id: None,
            start_ticks: 1,
            end_ticks: 2,
            start_ns: Some(1_000),
            end_ns: Some(1_000 + ns),
            clock_error_ns: None,
        })
    };
    let whole = recorded(&[("saxpy", 2)], 100).with([time(0, 40), time(1, 60)]);
    let part = recorded(&[("saxpy", 2)], 100).with([time(0, 30)]);
    let none = recorded(&[("saxpy", 2)], 100);
    let of = |after: &Recorded, name: &str| values(figure(&one(&whole, after), Table::Kernel, "saxpy", name));
    assert_eq!(of(&whole, "gpu.total"), (Some(100), Some(100), Verdict::Equal));
    assert_eq!(of(&part, "gpu.mean"), (Some(50), Some(30), Verdict::Untested));
    assert_eq!(of(&part, "gpu.total"), (Some(100), None, Verdict::Unknown));
    assert_eq!(of(&none, "gpu.mean"), (Some(50), None, Verdict::Unknown));
}

#[test]
fn queues_are_matched_by_their_roles_and_kernels_without_names_together() {
    let queue = |number: u32, pid: u32, kind: &str, internal, dispatches| {
        Fact::Queue(tables::Queue {
            queue: number,
            pid,
            queue_id: Some(number + 3),
            kind: kind.to_owned(),
            internal,
            handle: u64::from(pid) << 20,
            ..sample::queue(dispatches)
        })
    };
    let unnamed = |index: u64, object: u64| {
        Fact::Dispatch(Dispatch {
            kernel: None,
            kernel_object: object,
            ..sample::dispatch(index, 1_000 + index)
        })
    };
    let of = |facts: Vec<Fact>| recorded(&[], 0).with(facts);
    // The runtime creates its queue first, or last.
    let before = of(vec![
        queue(0, 70, "compute-aql", Some(true), 1),
        queue(1, 70, "compute-aql", Some(false), 10),
        queue(2, 70, "sdma", None, 0),
        queue(3, 71, "compute-aql", Some(false), 20),
        unnamed(0, 0xa000),
        unnamed(1, 0xb000),
    ]);
    let after = of(vec![
        queue(0, 90, "compute-aql", Some(false), 11),
        queue(1, 90, "compute-aql", Some(false), 12),
        queue(2, 90, "compute-aql", Some(true), 1),
        queue(3, 91, "compute-aql", Some(false), 20),
        unnamed(0, 0xc000),
    ]);
    let diff = one(&before, &after);
    let rows = &diff
        .tables
        .iter()
        .find(|table| table.table == Table::Queue)
        .unwrap()
        .rows;
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.name.as_str(), row.presence, values(&row.figures[0])))
        .collect();
    let expected = [
        (
            "p0/gpu0/compute-aql/program/0",
            Presence::Both,
            (Some(10), Some(11), Verdict::Differs),
        ),
        (
            "p0/gpu0/compute-aql/program/1",
            Presence::New,
            (Some(0), Some(12), Verdict::Differs),
        ),
        (
            "p0/gpu0/compute-aql/runtime/0",
            Presence::Both,
            (Some(1), Some(1), Verdict::Equal),
        ),
        ("p0/gpu0/sdma/0", Presence::Gone, (Some(0), Some(0), Verdict::Equal)),
        (
            "p1/gpu0/compute-aql/program/0",
            Presence::Both,
            (Some(20), Some(20), Verdict::Equal),
        ),
    ];
    assert_eq!(found, expected);
    let unnamed = figure(&diff, Table::Kernel, "(unnamed)", "dispatches");
    assert_eq!(values(unnamed), (Some(2), Some(1), Verdict::Differs));
}

fn repeated(launches: &[u64]) -> Vec<Recorded> {
    launches
        .iter()
        .map(|&ns| recorded(&[("saxpy", 3), ("sum", 2)], ns))
        .collect()
}

#[test]
fn repeated_runs_show_which_times_differ() {
    let before = repeated(&[100, 104, 96, 102, 98, 101]);
    let slower = repeated(&[130, 128, 140, 131, 127, 135]);
    let diff = compared(&before, &slower, &[]);
    let launch = figure(&diff, Table::Kernel, "saxpy", "launch.p50");
    assert_eq!(launch.verdict, Verdict::Significant);
    assert_eq!((launch.before.median, launch.after.median), (Some(100.5), Some(130.5)));
    assert_eq!((launch.before.min, launch.before.max), (Some(96), Some(104)));
    // All four times of the table are as far apart as they can be, so the correction changes nothing.
    let lowest = 2.0 / 924.0;
    let p = (launch.p.unwrap(), launch.p_corrected.unwrap());
    assert!((p.0 - lowest).abs() < 1e-9 && (p.1 - lowest).abs() < 1e-9, "{p:?}");
    assert_eq!(diff.tables.iter().find(|t| t.table == Table::Kernel).unwrap().tested, 4);
    // Counts that no run varies in are facts.
    assert_eq!(total(&diff, "dispatches").verdict, Verdict::Equal);
    let same = repeated(&[99, 103, 97, 105, 95, 101]);
    let diff = compared(&before, &same, &[]);
    assert_eq!(
        figure(&diff, Table::Kernel, "saxpy", "launch.p50").verdict,
        Verdict::Unclear
    );
    // Three runs cannot show it, however far they are apart.
    let diff = compared(&before[..3], &slower[..3], &[]);
    let launch = figure(&diff, Table::Kernel, "saxpy", "launch.p50");
    assert_eq!((launch.verdict, launch.p), (Verdict::Untested, None));
}

/// A count of which one run has another value is not a fact of a side.
#[test]
fn counts_that_vary_are_tested_as_times_are() {
    let of = |counts: &[u64]| {
        counts
            .iter()
            .map(|&n| recorded(&[("saxpy", n)], 100))
            .collect::<Vec<_>>()
    };
    let diff = compared(&of(&[3, 3, 3, 4]), &of(&[5, 5, 5, 5]), &[]);
    assert_eq!(total(&diff, "dispatches").verdict, Verdict::Significant);
    let diff = compared(&of(&[3, 3, 3, 5]), &of(&[4, 4, 4, 4]), &[]);
    assert_eq!(total(&diff, "dispatches").verdict, Verdict::Unclear);
    let diff = compared(&of(&[3, 3]), &of(&[4, 4]), &[]);
    assert_eq!(total(&diff, "dispatches").verdict, Verdict::Differs);
}

fn judged(before: &[Recorded], after: &[Recorded], threshold: &str) -> (Outcome, String) {
    let diff = compared(before, after, &[threshold]);
    let judged = &diff.thresholds[0];
    assert_eq!(diff.outcome, Some(judged.outcome));
    (judged.outcome, judged.why.join("; "))
}

#[test]
fn a_threshold_on_a_count_is_decided_by_one_run() {
    let (before, after) = (
        [recorded(&[("saxpy", 10)], 100)],
        [recorded(&[("saxpy", 11), ("new", 1)], 100)],
    );
    for (threshold, expected) in [
        ("dispatches>+0", Outcome::Fail),
        ("dispatches>+10%", Outcome::Fail),
        ("dispatches>+20%", Outcome::Pass),
        ("dispatches>+1", Outcome::Fail),
        ("dispatches>+2", Outcome::Pass),
        ("dispatches<-0", Outcome::Pass),
        ("barriers>+0%", Outcome::Pass),
        ("kernel:saxpy:dispatches>10%", Outcome::Pass),
        ("kernel:saxpy:dispatches>9%", Outcome::Fail),
        ("kernel:*:dispatches>50%", Outcome::Fail),
        ("kernel:new:dispatches>1000%", Outcome::Fail),
        // One run cannot tell a time from chance, whether it is longer or not.
        ("launch.p50>+10%", Outcome::Inconclusive),
        // There is no such kernel, and no time of one that is new.
        ("kernel:nothing:dispatches>+0", Outcome::Inconclusive),
        ("kernel:new:launch.p50>+0", Outcome::Inconclusive),
    ] {
        let (outcome, why) = judged(&before, &after, threshold);
        assert_eq!(outcome, expected, "{threshold}: {why}");
        assert_eq!(why.is_empty(), expected == Outcome::Pass, "{threshold}: {why}");
    }
    let (_, why) = judged(&before, &after, "dispatches>+10%");
    assert_eq!(why, "dispatches: 10 before, 12 after (+20.0 %)");
    // The other direction.
    assert_eq!(judged(&after, &before, "dispatches<-10%").0, Outcome::Fail);
    assert_eq!(judged(&after, &before, "dispatches<-20%").0, Outcome::Pass);
}

#[test]
fn a_threshold_never_passes_for_lack_of_data() {
    let whole = [recorded(&[("saxpy", 10)], 100)];
    let mut blind = whole.clone();
    blind[0].watched.ioctls = false;
    assert_eq!(judged(&whole, &blind, "ioctls>+0").0, Outcome::Inconclusive);
    assert_eq!(judged(&blind, &whole, "ioctls>+0").0, Outcome::Inconclusive);
    assert_eq!(judged(&whole, &blind, "dispatches>+0").0, Outcome::Pass);
    let lossy = [whole[0].clone().lost("doorbell-ring")];
    assert_eq!(judged(&whole, &lossy, "dispatches>+0").0, Outcome::Inconclusive);
    let mut killed = whole.clone();
    killed[0].finished = false;
    assert_eq!(judged(&killed, &whole, "dispatches>+0").0, Outcome::Inconclusive);
    let mut simulated = repeated(&[100, 101, 102, 103]);
    simulated.iter_mut().for_each(|run| run.simulated = true);
    let found = judged(&simulated, &repeated(&[50, 51, 52, 53]), "launch.p50>+10%");
    assert_eq!(found.0, Outcome::Inconclusive);
}

#[test]
fn a_threshold_on_a_time_needs_runs_that_exceed_it() {
    let before = repeated(&[100, 104, 96, 102, 98, 101]);
    let slower = repeated(&[130, 128, 140, 131, 127, 135]);
    let of = |after: &[Recorded], threshold| judged(&before, after, threshold).0;
    assert_eq!(of(&slower, "launch.p50>+10%"), Outcome::Fail);
    assert_eq!(of(&slower, "launch.p50>+10ns"), Outcome::Fail);
    // 30 % more, but the slowest of the runs before would be allowed.
    assert_eq!(of(&slower, "launch.p50>+29%"), Outcome::Inconclusive);
    assert_eq!(of(&slower, "launch.p50>+40%"), Outcome::Pass);
    assert_eq!(of(&slower, "kernel:*:launch.p99>+10%"), Outcome::Fail);
    assert_eq!(of(&before, "launch.p50>+10%"), Outcome::Pass);
    let few = |n: usize| judged(&before[..n], &slower[..n], "launch.p50>+10%").0;
    assert_eq!([few(2), few(3)], [Outcome::Inconclusive, Outcome::Fail]);
    // With ten tests, three runs do not suffice.
    let many = ["kernel:*:launch.p99>+10%"; 5];
    let diff = compared(&before[..3], &slower[..3], &many);
    assert_eq!(diff.outcome, Some(Outcome::Inconclusive));
    let diff = compared(&before, &slower, &[&["dispatches>+0"], &many[..]].concat());
    let found: Vec<_> = diff
        .thresholds
        .iter()
        .map(|judged| (judged.outcome, judged.figures))
        .collect();
    let expected = [&[(Outcome::Pass, 1)][..], &[(Outcome::Fail, 2); 5]].concat();
    assert_eq!((diff.outcome, found), (Some(Outcome::Fail), expected));
}

#[test]
fn mistakes_in_thresholds_say_what_there_is() {
    let error = |text: &str| text.parse::<Threshold>().map(|_| ()).unwrap_err().to_string();
    for (text, word) in [
        ("dispatches", "write FIGURE>+LIMIT"),
        ("dispatch>+0", "it has dispatches, dispatches.internal"),
        ("kernels:saxpy:dispatches>+0", "total, kernel, path"),
        ("kernel:dispatches>+0", "TABLE:ROW:FIGURE"),
        ("dispatches>-1", "-1 is not a limit"),
        ("dispatches<+1", "+1 is not a limit"),
        ("dispatches>+2us", "+10% or +3"),
        ("launch.p50>+2", "+10% or +2us"),
        ("launch.p50>+nan", "is not a limit"),
        ("copies.bytes>+1GB", "+4KiB"),
        ("dispatches>", "is not a limit"),
    ] {
        let found = error(text);
        assert!(found.contains(word), "{text}: {found}");
    }
    for text in [
        "kernel:ns::k<4, (A)1>::run:launch.p50>+1.5us",
        "launch.p50>+0",
        "launch.p50 > +10 %",
        "total:total:wall>+1s",
        "copies.bytes<-1MiB",
    ] {
        let text = text.replace(' ', "");
        assert!(text.parse::<Threshold>().is_ok(), "{text}");
    }
}

#[test]
fn names_of_kernels_can_have_the_signs_of_thresholds() {
    let name = "ns::k<4, (A)1>::run";
    let (before, after) = ([recorded(&[(name, 1)], 100)], [recorded(&[(name, 2)], 100)]);
    let (outcome, why) = judged(&before, &after, "kernel:ns::k<4, (A)1>::run:dispatches>+0");
    assert_eq!(
        (outcome, why.as_str()),
        (
            Outcome::Fail,
            "dispatches of kernel ns::k<4, (A)1>::run: 1 before, 2 after (+100.0 %)"
        )
    );
}

fn any() -> impl Strategy<Value = Recorded> {
    let kernels = prop::collection::vec((prop::sample::select(vec!["a", "b", "c"]), 0..4_u64), 0..4);
    let ioctls = prop::collection::vec((prop::sample::select(vec!["SVM", "CREATE_QUEUE"]), 1..100_u64), 0..3);
    let watched = prop::array::uniform4(prop::bool::weighted(0.8));
    let lost = prop::option::weighted(0.2, prop::sample::select(vec!["store", "api-ring", "doorbell-ring"]));
    (kernels, ioctls, 50..60_u64, watched, lost).prop_map(|(kernels, ioctls, launch, watched, lost)| {
        let ioctls = ioctls
            .into_iter()
            .zip(1_000..)
            .map(|((name, ns), time)| ioctl(name, time, ns));
        let mut run = recorded(&kernels, launch).with(ioctls);
        run.watched.ioctls = watched[0];
        run.watched.packets = watched[1];
        run.simulated = watched[2];
        run.finished = watched[3];
        lost.into_iter().fold(run, Recorded::lost)
    })
}

proptest! {
    #[test]
    fn a_recording_does_not_differ_from_itself(run in any(), copies in 1..6_usize) {
        let runs = vec![run; copies];
        let found = verdicts(&compared(&runs, &runs, &[]));
        for differing in [Verdict::Differs, Verdict::Significant, Verdict::Unclear, Verdict::Untested] {
            prop_assert_eq!(found.get(&differing), None);
        }
    }

    #[test]
    fn the_other_direction_has_the_opposite_changes(
        before in prop::collection::vec(any(), 1..6),
        after in prop::collection::vec(any(), 1..6),
    ) {
        let (there, back) = (compared(&before, &after, &[]), compared(&after, &before, &[]));
        prop_assert_eq!(verdicts(&there), verdicts(&back));
        for (one, other) in there.tables.iter().zip(&back.tables) {
            prop_assert_eq!(one.rows.len(), other.rows.len());
            for (one, other) in one.rows.iter().zip(&other.rows) {
                for (one, other) in one.figures.iter().zip(&other.figures) {
                    prop_assert_eq!(&one.before, &other.after);
                    prop_assert_eq!(one.change.map(|change| -change), other.change.map(|change| change + 0.0));
                    let p = one.p.zip(other.p).map(|(one, other)| (one - other).abs());
                    prop_assert!(one.p.is_some() == other.p.is_some() && p.is_none_or(|p| p < 1e-9));
                }
            }
        }
    }

    /// No unknown value becomes a change, and every difference has values on both sides.
    #[test]
    fn what_is_unknown_is_never_compared(before in any(), after in any()) {
        let diff = one(&before, &after);
        for figure in diff.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.figures) {
            let known = figure.before.median.is_some() && figure.after.median.is_some();
            let is_compared = !matches!(figure.verdict, Verdict::Unknown | Verdict::Absent);
            prop_assert_eq!(figure.change.is_some(), is_compared);
            prop_assert!(known || !is_compared);
            prop_assert_eq!(figure.why.is_some(), matches!(figure.verdict, Verdict::Unknown | Verdict::Unsure));
        }
    }
}
