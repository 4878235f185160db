//! Chrome's JSON.

use serde_json::Value;
use tracer_core::tables::Table;

use super::{export, recording};
use crate::chrome::Chrome;
use crate::{About, Window, Written};

fn exported(about: &About) -> (Value, String, Written) {
    let mut out = Vec::new();
    let written = export(Box::new(Chrome::exporter(&mut out, about).unwrap()), recording::facts());
    let text = String::from_utf8(out).unwrap();
    (serde_json::from_str(&text).unwrap(), text, written)
}

/// Returns the events of a phase and a category.
fn of<'a>(document: &'a Value, phase: &str, category: &str) -> Vec<&'a Value> {
    let events = document["traceEvents"].as_array().unwrap();
    let wanted = |event: &&Value| event["ph"] == phase && event["cat"] == category;
    events.iter().filter(wanted).collect()
}

/// Returns microseconds as ns, from the digits that the document has.
fn ns(value: &Value) -> u64 {
    let text = value.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = format!("{fraction:0<3}");
    assert_eq!(fraction.len(), 3, "{text}");
    whole.parse::<u64>().unwrap() * 1000 + fraction.parse::<u64>().unwrap()
}

#[test]
fn dispatches_have_times_only_if_the_gpu_gave_them() {
    let (document, _, written) = exported(&recording::about());
    let timed = of(&document, "X", "dispatch");
    let spans: Vec<_> = timed
        .iter()
        .map(|event| (ns(&event["ts"]), ns(&event["dur"])))
        .collect();
    assert_eq!(spans, [(11_000, 2_001), (12_999, 1_001)]);
    // They overlap by 2 ns, so they are on different lines.
    assert_ne!(timed[0]["tid"], timed[1]["tid"]);
    assert_eq!(timed[0]["args"]["end_ns"], 13_001);
    assert_eq!(
        (&timed[0]["args"]["grid_x"], &timed[0]["args"]["path"]),
        (&1000.into(), &"doorbell".into())
    );
    assert_eq!(timed[0]["args"]["kernel_object"], "0x40");
    assert_eq!(timed[0]["args"]["reserve_ns"], Value::Null);
    let instants = of(&document, "i", "dispatch");
    assert_eq!(instants.len(), 1);
    assert_eq!(
        (&instants[0]["name"], ns(&instants[0]["ts"])),
        (&recording::hostile().into(), 10_000)
    );
    assert_eq!(written.without_gpu_time, Some(1));
    assert_eq!(
        (written.rows[&Table::Dispatches], written.rows[&Table::GpuTimes]),
        (3, 2)
    );
    assert_eq!(written.left_out[&Table::Kernels].0, 1);
}

#[test]
fn calls_are_complete_or_marked() {
    let (document, _, written) = exported(&recording::about());
    let calls = of(&document, "X", "hip");
    assert_eq!(calls.len(), 1);
    assert_eq!((ns(&calls[0]["ts"]), ns(&calls[0]["dur"])), (2_000, 28_001));
    let events = document["traceEvents"].as_array().unwrap();
    let open: Vec<_> = events.iter().filter(|event| event["ph"] == "B").collect();
    assert_eq!(
        open.iter().map(|event| ns(&event["ts"])).collect::<Vec<_>>(),
        [40_000, 41_000]
    );
    let closed: Vec<_> = events.iter().filter(|event| event["ph"] == "E").collect();
    assert!(
        closed
            .iter()
            .all(|event| ns(&event["ts"]) == 90_000 && event["args"]["unfinished"] == true)
    );
    assert_eq!((closed.len(), written.unfinished), (2, 2));
}

#[test]
fn flows_lead_from_the_call_to_what_it_submitted() {
    let (document, ..) = exported(&recording::about());
    let begins = of(&document, "s", "flow");
    assert_eq!(
        begins
            .iter()
            .map(|event| (ns(&event["ts"]), &event["id"]))
            .collect::<Vec<_>>(),
        [(2_000, &1.into()), (40_000, &2.into())]
    );
    // Three dispatches and a copy.
    let steps = of(&document, "t", "flow");
    assert_eq!(
        steps.iter().map(|event| ns(&event["ts"])).collect::<Vec<_>>(),
        [11_000, 10_000, 12_999, 12_000]
    );
    assert!(steps.iter().all(|event| event["id"] == 1));
    // Each belongs to the event before it.
    let events = document["traceEvents"].as_array().unwrap();
    for pair in events.windows(2).filter(|pair| pair[1]["cat"] == "flow") {
        assert_eq!((&pair[0]["ts"], &pair[0]["tid"]), (&pair[1]["ts"], &pair[1]["tid"]));
    }
    // The call is before the window, so no flow begins in it.
    let mut about = recording::about();
    about.window = Window {
        from_ns: Some(5_000),
        to_ns: None,
    };
    let mut out = Vec::new();
    let later = recording::facts()
        .into_iter()
        .filter(|fact| !matches!(fact, tracer_core::tables::Fact::ApiCall(_)));
    export(Box::new(Chrome::exporter(&mut out, &about).unwrap()), later.collect());
    let document: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(of(&document, "t", "flow").len(), 0);
    // The queue was created before it, too.
    assert_eq!(of(&document, "i", "queue").len(), 0);
}

#[test]
fn a_ring_job_is_a_span_only_if_both_ends_are_known() {
    let (document, ..) = exported(&recording::about());
    let spans = of(&document, "X", "ring_job");
    assert_eq!(
        spans.iter().map(|event| ns(&event["ts"])).collect::<Vec<_>>(),
        [15_100, 15_300]
    );
    assert_ne!(spans[0]["tid"], spans[1]["tid"]);
    let instants = of(&document, "i", "ring_job");
    assert_eq!(
        (instants.len(), &instants[0]["name"]),
        (1, &"job on gfx_0.0.0: submit".into())
    );
}

#[test]
fn metadata_say_what_is_missing_and_names_that_the_gpu_is_simulated() {
    let (document, text, _) = exported(&recording::about());
    let about = &document["otherData"];
    assert_eq!(about["losses"]["doorbell"], 3);
    assert_eq!(
        (&about["complete"], &about["simulated"]),
        (&true.into(), &"a test".into())
    );
    assert_eq!(about["not_watched"][0], "kernel_rings");
    assert_eq!(document["displayTimeUnit"], "ns");
    let names = of(&document, "M", "");
    assert!(names.is_empty());
    let events = document["traceEvents"].as_array().unwrap();
    let named: Vec<&str> = events
        .iter()
        .filter(|event| event["ph"] == "M" && event["pid"] == 7)
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    assert!(
        named
            .iter()
            .any(|name| name.starts_with("queue 0: compute-aql") && name.contains("SIMULATED GPU"))
    );
    assert!(
        named
            .iter()
            .any(|name| name.ends_with("(SIMULATED GPU)") && name.contains("owned"))
    );
    assert!(!text.contains('\u{1b}') && !text.contains("##["));
    // A counter has a value only where the trace has one.
    let counters: Vec<_> = events.iter().filter(|event| event["ph"] == "C").collect();
    let values: Vec<_> = counters
        .iter()
        .map(|event| (ns(&event["ts"]), event["args"]["value"].clone()))
        .collect();
    assert_eq!(values, [(11_000, 2.into()), (20_000, 3.into())]);
}
