//! Chrome's JSON.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::found::{Found, key, number};

/// Returns microseconds as ns, by their digits.
fn ns(value: &Value) -> u64 {
    let text = value.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    let fraction = format!("{fraction:0<3}");
    assert_eq!(fraction.len(), 3, "{text}");
    whole.parse::<u64>().expect("a number") * 1000 + fraction.parse::<u64>().expect("a number")
}

pub fn read(file: &Path) -> Found {
    let document: Value = serde_json::from_slice(&fs::read(file).expect("the file")).expect("JSON");
    assert!(document["otherData"]["simulated"].is_string());
    let mut found = Found::default();
    for event in document["traceEvents"].as_array().expect("events") {
        let (args, phase) = (&event["args"], event["ph"].as_str().expect("a phase"));
        match (event["cat"].as_str().unwrap_or_default(), phase) {
            ("dispatch", "i") => {
                found.dispatch(args);
                assert_eq!(ns(&event["ts"]), number(&args["time_ns"]));
            }
            ("dispatch", "X") => {
                found.dispatch(args);
                let begin = ns(&event["ts"]);
                let end = begin + ns(&event["dur"]);
                assert_eq!((begin, end), (number(&args["start_ns"]), number(&args["end_ns"])));
                found.gpu(key(args), begin, end);
            }
            ("copy", "i") => found.copy(args),
            ("hip" | "hsa" | "opencl", "X" | "B") => {
                assert_eq!(event["name"], args["function"]);
                assert_eq!(ns(&event["ts"]), number(&args["enter_ns"]));
                if phase == "X" {
                    assert_eq!(ns(&event["ts"]) + ns(&event["dur"]), number(&args["exit_ns"]));
                }
                found.call(event["name"].as_str().expect("a name"));
            }
            _ => {}
        }
    }
    found.sorted()
}
