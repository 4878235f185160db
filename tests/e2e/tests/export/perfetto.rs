//! Perfetto's packets, by the numbers of the fields in Perfetto's .proto files.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::found::{Found, key, number};
use super::wire::Fields;

/// `TYPE_SLICE_BEGIN` and `TYPE_INSTANT` of track_event.proto.
const BEGIN: u64 = 1;
const INSTANT: u64 = 3;

pub fn read(file: &Path) -> Found {
    let bytes = fs::read(file).expect("the file");
    let mut names: HashMap<(u64, u64), String> = HashMap::new();
    let mut found = Found::default();
    // The dispatch that each event names as its work on the GPU.
    let mut submitted: HashMap<u64, (u32, u64)> = HashMap::new();
    for packet in Fields::read(&bytes).all(1) {
        if let Some(interned) = packet.one(12) {
            for kind in [1, 2, 3, 24] {
                let entries = interned.all(kind).into_iter();
                names.extend(entries.map(|of| ((kind, of.number(1).expect("a number")), of.text(2).expect("a name"))));
            }
        }
        if let Some(event) = packet.one(11) {
            let args = annotations(&event, &names);
            let at = packet.number(8).expect("a time");
            let category = event.number(3).map(|iid| names[&(1, iid)].as_str());
            match (category, event.number(9)) {
                (Some("dispatch"), Some(INSTANT)) => {
                    found.dispatch(&args);
                    if let Some(ids) = event.one(3000) {
                        submitted.insert(ids.number(1).expect("a number"), key(&args));
                    }
                    assert_eq!(at, number(&args["time_ns"]));
                }
                (Some("copy"), Some(INSTANT)) => found.copy(&args),
                (Some("hip" | "hsa" | "opencl"), Some(BEGIN)) => {
                    let name = &names[&(2, event.number(10).expect("a name"))];
                    assert_eq!(
                        (name.as_str(), at),
                        (args["function"].as_str().expect("it"), number(&args["enter_ns"]))
                    );
                    found.call(name);
                }
                _ => {}
            }
        }
        if let Some(stage) = packet.one(53) {
            let extra = stage.all(6).into_iter();
            let extra = extra.map(|of| (of.text(1).expect("a name"), of.text(2).expect("a value").into()));
            let extra = Value::Object(extra.collect());
            let begin = packet.number(8).expect("a time");
            assert_eq!(names[&(24, stage.number(14).expect("a kernel"))], extra["kernel"]);
            let (queue, index) = key(&extra);
            let named = submitted.remove(&stage.number(1).expect("a number"));
            assert_eq!(named, Some((queue, index)), "the dispatch of this work");
            assert!(names[&(24, stage.number(13).expect("a queue"))].starts_with(&format!("queue {queue}:")));
            found.gpu((queue, index), begin, begin + stage.number(2).expect("a duration"));
        }
    }
    assert!(submitted.is_empty(), "work of the GPU that is not there: {submitted:?}");
    found.sorted()
}

/// Returns the arguments of an event.
fn annotations(event: &Fields, names: &HashMap<(u64, u64), String>) -> Value {
    let args = event.all(4).into_iter().map(|of| {
        let name = names[&(3, of.number(1).expect("a name"))].clone();
        let number = [2, 3, 4, 7].into_iter().find_map(|field| of.number(field));
        let value = number.map_or_else(|| Value::from(of.text(6).expect("a value")), Value::from);
        (name, value)
    });
    Value::Object(args.collect::<Map<_, _>>())
}
