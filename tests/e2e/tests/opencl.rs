//! OpenCL calls: the trace has each call that the program made, with its bytes and its queue.

use std::{collections::BTreeMap, process::Command};

use tracer_common::api::{Classes, FUNCTIONS, Layer, find};
use tracer_core::tables::ApiCall;
use tracer_e2e::{
    compare::{self, calls, consistent_calls},
    place,
    scenario::{Run, folder},
};

/// A call, as the program printed it.
struct Made {
    function: String,
    bytes: Option<u64>,
}

/// Runs the program on the simulated GPU in a root file system with OpenCL. Returns the recording and the program's calls; `None`
/// if there is no such file system.
fn recorded(suite: &str) -> Option<(Run, Vec<Made>)> {
    let root = place::clients().join(suite);
    if !root.join("usr/lib/x86_64-linux-gnu/libamdocl64.so.2").exists() {
        eprintln!(
            "NOT TESTED: OpenCL of Debian {suite}: {} has no libamdocl64",
            root.display()
        );
        return None;
    }
    let (dir, programs) = (folder(), place::programs());
    let output = Command::new(programs.join("tracer"))
        .args(["record", "--api", "opencl", "-o"])
        .arg(dir.path().join("t.trace"))
        .arg("--")
        .arg(programs.join("kfd-sim"))
        .arg("--root")
        .arg(&root)
        .args(["--asic", "gfx90a", "--truth"])
        .arg(dir.path().join("truth.jsonl"))
        .arg("--bind")
        .arg(&programs)
        .arg("--bind")
        .arg(dir.path())
        .arg("--")
        .arg(programs.join("opencl-calls"))
        .output()
        .expect("tracer runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let made = printed.lines().filter(|line| line.starts_with("cl")).map(|line| {
        let mut words = line.split(' ');
        Made {
            function: words.next().expect("a name").to_owned(),
            bytes: words.next().and_then(|bytes| bytes.parse().ok()),
        }
    });
    let made = made.collect();
    Some((Run::read(dir, output), made))
}

#[test]
fn opencl_calls_equal_the_calls_of_the_program() {
    for suite in ["sid", "experimental"] {
        let Some((run, made)) = recorded(suite) else { continue };
        compare::all(&run);
        consistent_calls(&run);
        let class = |made: &&Made| {
            let number = find(Layer::OpenCl, &made.function).unwrap_or_else(|| panic!("not listed: {}", made.function));
            FUNCTIONS[number].class
        };
        let (with_row, counted): (Vec<&Made>, Vec<&Made>) =
            made.iter().partition(|made| Classes::USUAL.has(class(made)));
        let rows: Vec<&ApiCall> = calls(&run).into_iter().filter(|call| call.parent.is_none()).collect();
        let names = |made: &[&Made]| made.iter().map(|made| made.function.clone()).collect::<Vec<_>>();
        let functions: Vec<String> = rows.iter().map(|call| call.function.clone().into_owned()).collect();
        assert_eq!(functions, names(&with_row), "{suite}");
        let mut queues: Vec<u64> = Vec::new();
        for (made, row) in with_row.iter().zip(&rows) {
            assert_eq!((&*row.layer, row.failed), ("opencl", Some(false)), "{suite}: {row:?}");
            assert_eq!(row.bytes, made.bytes, "{suite}: {row:?}");
            queues.extend(row.stream);
            if row.function == "clCreateCommandQueue" {
                queues.push(row.ret.expect("a handle") as u64);
            }
        }
        queues.dedup();
        assert_eq!(queues.len(), 1, "{suite}: one command queue: {queues:x?}");
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        for made in counted {
            *times.entry(&made.function).or_default() += 1;
        }
        let stats: BTreeMap<&str, u64> = run.api_stats().map(|row| (&*row.function, row.calls)).collect();
        // The loader and the platform ask questions of their own.
        for (function, calls) in times {
            assert!(stats[function] >= calls, "{suite}: {function}: {stats:?}");
        }
        assert_eq!(stats["clSetKernelArg"], 5, "{suite}: {stats:?}");
        let launched: u64 = run
            .dispatches()
            .filter(|d| d.kernel.as_deref() == Some("add_one"))
            .count() as u64;
        assert_eq!(launched, 5, "{suite}");
    }
}
