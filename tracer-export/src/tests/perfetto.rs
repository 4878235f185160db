//! Perfetto's packets. Numbers of fields are written out here, so that a wrong one in the writer shows.

use std::collections::{BTreeMap, HashMap};

use super::wire::Fields;
use super::{export, recording};
use crate::Written;
use crate::perfetto::Perfetto;

/// A trace as a viewer knows it: names instead of numbers.
#[derive(Default)]
struct Read {
    /// Names of tracks by their ids, with the id around each.
    tracks: HashMap<u64, (String, Option<u64>)>,
    events: Vec<Event>,
    stages: Vec<Stage>,
    attributes: BTreeMap<String, String>,
    clocks: BTreeMap<u64, u64>,
}

#[derive(Clone, Debug)]
struct Event {
    at: u64,
    kind: u64,
    track: u64,
    name: String,
    category: String,
    flows: Vec<u64>,
    /// The number of what it submitted to the GPU.
    submits: Option<u64>,
    value: Option<u64>,
    args: BTreeMap<String, String>,
}

struct Stage {
    number: u64,
    at: u64,
    duration: u64,
    gpu: u64,
    queue: String,
    kernel: String,
    pid: u64,
    extra: BTreeMap<String, String>,
    groups: Vec<u64>,
}

fn read(bytes: &[u8]) -> Read {
    let mut read = Read::default();
    let mut names: HashMap<(u64, u64), String> = HashMap::new();
    let mut contexts: HashMap<u64, u64> = HashMap::new();
    for (position, packet) in Fields::read(bytes).all(1).into_iter().enumerate() {
        assert_eq!(packet.number(10), Some(1), "all packets are on one sequence");
        // The first packet clears the state of the sequence, and says that it is the first.
        let expected = if position == 0 {
            (Some(1), Some(1))
        } else {
            (None, None)
        };
        let flags = packet.number(13);
        assert_eq!((flags.filter(|flags| flags & 1 != 0), packet.number(87)), expected);
        if let Some(interned) = packet.one(12) {
            for kind in [1, 2, 3, 24] {
                for entry in interned.all(kind) {
                    let name = entry.text(2).unwrap();
                    assert!(names.insert((kind, entry.number(1).unwrap()), name).is_none());
                }
            }
            contexts.extend(
                interned
                    .all(23)
                    .iter()
                    .map(|of| (of.number(1).unwrap(), of.number(2).unwrap())),
            );
        }
        if let Some(snapshot) = packet.one(6) {
            assert_eq!(snapshot.number(2), Some(3), "the primary clock is CLOCK_MONOTONIC");
            assert_eq!(packet.one(59).unwrap().number(58), Some(3));
            read.clocks = snapshot
                .all(1)
                .iter()
                .map(|of| (of.number(1).unwrap(), of.number(2).unwrap()))
                .collect();
        }
        if let Some(track) = packet.one(60) {
            let process = track.one(3).map(|process| process.text(6).unwrap());
            let thread = track.one(4).map(|thread| thread.text(5).unwrap());
            let name = track.text(2).or(process).or(thread).unwrap();
            let parent = track.number(5);
            assert!(
                parent.is_none_or(|parent| read.tracks.contains_key(&parent)),
                "{name} comes after its parent"
            );
            read.tracks.insert(track.number(1).unwrap(), (name, parent));
        }
        if let Some(attributes) = packet.one(126) {
            let pairs = attributes.all(1);
            read.attributes = pairs
                .iter()
                .map(|of| (of.text(1).unwrap(), of.text(3).unwrap()))
                .collect();
        }
        if let Some(event) = packet.one(11) {
            assert_eq!(flags, Some(2), "an event needs the names before it");
            let track = event.number(11).unwrap();
            assert!(read.tracks.contains_key(&track));
            let args = event.all(4).into_iter().map(|of| {
                let name = names[&(3, of.number(1).unwrap())].clone();
                let number = [2, 3, 4, 7].into_iter().find_map(|field| of.number(field));
                (name, number.map_or_else(|| of.text(6).unwrap(), |n| n.to_string()))
            });
            read.events.push(Event {
                at: packet.number(8).unwrap(),
                kind: event.number(9).unwrap(),
                track,
                name: event.number(10).map(|iid| names[&(2, iid)].clone()).unwrap_or_default(),
                category: event.number(3).map(|iid| names[&(1, iid)].clone()).unwrap_or_default(),
                flows: event.numbers(47),
                submits: event.one(3000).map(|ids| ids.number(1).unwrap()),
                value: event.number(30),
                args: args.collect(),
            });
        }
        if let Some(stage) = packet.one(53) {
            let extra = stage
                .all(6)
                .into_iter()
                .map(|of| (of.text(1).unwrap(), of.text(2).unwrap()));
            let groups = stage.one(21).and_then(|launch| launch.one(1));
            read.stages.push(Stage {
                number: stage.number(1).unwrap(),
                at: packet.number(8).unwrap(),
                duration: stage.number(2).unwrap(),
                gpu: stage.number(11).unwrap(),
                queue: names[&(24, stage.number(13).unwrap())].clone(),
                kernel: names[&(24, stage.number(14).unwrap())].clone(),
                pid: contexts[&stage.number(5).unwrap()],
                extra: extra.collect(),
                groups: groups.map_or(Vec::new(), |of| {
                    [1, 2, 3].map(|field| of.number(field).unwrap()).to_vec()
                }),
            });
        }
    }
    read
}

fn exported() -> (Read, Written) {
    let mut out = Vec::new();
    let exporter = Perfetto::exporter(&mut out, &recording::about()).unwrap();
    let written = export(Box::new(exporter), recording::facts());
    (read(&out), written)
}

impl Read {
    fn of(&self, category: &str) -> Vec<&Event> {
        self.events.iter().filter(|event| event.category == category).collect()
    }

    fn track(&self, event: &Event) -> &str {
        &self.tracks[&event.track].0
    }
}

#[test]
fn what_the_gpu_ran_has_exactly_its_times() {
    let (read, written) = exported();
    let spans: Vec<_> = read
        .stages
        .iter()
        .map(|stage| (stage.at, stage.duration, stage.gpu))
        .collect();
    assert_eq!(spans, [(11_000, 2_001, 0), (12_999, 1_001, 0)]);
    let first = &read.stages[0];
    assert_eq!((first.kernel.as_str(), first.pid), ("scale", 7));
    assert_eq!(first.queue, "queue 0: compute-aql, KFD queue 0, GPU 5 (SIMULATED GPU)");
    assert_eq!(first.groups, [16, 2, 1]);
    let extra = |name: &str| first.extra.get(name).map(String::as_str);
    assert_eq!(
        [
            "kernel_object",
            "grid_x",
            "workgroup_x",
            "stream",
            "path",
            "evidence",
            "index",
            "reserve_ns"
        ]
        .map(extra),
        [
            Some("0x40"),
            Some("1000"),
            Some("64"),
            Some("85"),
            Some("doorbell"),
            Some("header"),
            Some("0"),
            None
        ]
    );
    // Each dispatch is on the queue's track once, when its doorbell rang.
    let submitted = read.of("dispatch");
    // One with times names its work on the GPU.
    let names = |stage: &Stage| submitted.iter().position(|event| event.submits == Some(stage.number));
    let named: Vec<_> = read.stages.iter().map(names).collect();
    let same = |stage: &Stage| {
        submitted
            .iter()
            .position(|event| event.args["index"] == stage.extra["index"])
    };
    assert_eq!(named, read.stages.iter().map(same).collect::<Vec<_>>());
    assert!(named.contains(&Some(0)), "{named:?}");
    assert_eq!(
        submitted.iter().filter(|event| event.submits.is_some()).count(),
        named.iter().flatten().count()
    );
    assert_eq!(
        submitted.iter().map(|event| (event.at, event.kind)).collect::<Vec<_>>(),
        [(10_000, 3); 3]
    );
    assert!(submitted.iter().all(|event| read.track(event) == first.queue));
    assert_eq!(submitted[1].name, recording::hostile());
    assert_eq!(written.without_gpu_time, Some(1));
}

#[test]
fn slices_nest_and_those_without_an_end_are_marked() {
    let (read, written) = exported();
    let thread: Vec<_> = read
        .events
        .iter()
        .filter(|event| read.track(event) == "thread 8")
        .collect();
    let mut depth = 0_u64;
    for event in &thread {
        match event.kind {
            1 => depth += 1,
            2 => depth = depth.checked_sub(1).unwrap(),
            kind => panic!("{kind}"),
        }
    }
    assert_eq!(depth, 0);
    let unfinished: Vec<_> = thread
        .iter()
        .filter(|event| event.args.contains_key("unfinished"))
        .collect();
    assert_eq!(
        unfinished.iter().map(|event| event.at).collect::<Vec<_>>(),
        [90_000, 90_000]
    );
    assert_eq!(written.unfinished, 2);
    let names: Vec<_> = thread.iter().map(|event| (event.at, event.name.as_str())).collect();
    assert_eq!(names[..2], [(1_200, "CREATE_QUEUE"), (1_450, "")]);
    assert_eq!((names[2], names[3]), ((2_000, "hipModuleLaunchKernel"), (30_001, "")));
}

#[test]
fn the_flow_of_a_call_passes_through_what_it_submitted() {
    let (read, _) = exported();
    let mut with_flows: Vec<_> = read.events.iter().filter(|event| !event.flows.is_empty()).collect();
    with_flows.sort_by_key(|event| event.at);
    let of_first = with_flows.iter().filter(|event| event.flows == [1]);
    let categories: Vec<_> = of_first.map(|event| event.category.as_str()).collect();
    assert_eq!(categories, ["hip", "dispatch", "dispatch", "dispatch", "copy"]);
    // The second call submitted something, too, which has no row.
    assert_eq!(with_flows.len(), 6);
}

#[test]
fn counters_and_rings_and_metadata() {
    let (read, _) = exported();
    let counters: Vec<_> = read.events.iter().filter(|event| event.kind == 4).collect();
    let values: Vec<_> = counters
        .iter()
        .map(|event| (read.track(event), event.at, event.value))
        .collect();
    assert_eq!(
        values,
        [
            ("queue 0: published, not taken", 11_000, Some(2)),
            ("lost: doorbell", 20_000, Some(3))
        ]
    );
    let jobs = read.of("ring_job");
    assert_eq!(jobs.len(), 3);
    assert!(jobs.iter().all(|job| read.track(job) == "gfx_0.0.0"));
    assert_ne!(jobs[0].track, jobs[1].track, "they overlap");
    assert_eq!(
        read.clocks,
        BTreeMap::from([(3, 1_000), (6, 2_000), (1, 1_700_000_000_000_000_000)])
    );
    let attribute = |name: &str| read.attributes[name].as_str();
    assert_eq!(attribute("tracer.losses"), "doorbell: 3");
    assert_eq!(attribute("tracer.not_watched"), "kernel_rings");
    assert_eq!(
        (attribute("tracer.complete"), attribute("tracer.simulated")),
        ("true", "a test")
    );
    let about = read.of("about");
    assert_eq!(about[0].args["simulated"], "a test");
    let process = read.tracks.values().find(|(name, _)| name.contains("owned")).unwrap();
    assert!(process.0.ends_with("(SIMULATED GPU)"));
}
