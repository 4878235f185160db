//! Stacks of launches: the functions of programs without frame pointers, in order, for every dispatch that the device saw.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Output},
};

use tracer_core::{tables::Stack, words::Named};
use tracer_e2e::{
    place,
    scenario::{Run, folder},
};

/// Records a command on a simulated GPU in a root file system. `more` are options of `record`.
fn recorded(root: &Path, more: &[&str], visible: &[&Path], command: &[&OsStr]) -> Run {
    let (dir, programs) = (folder(), place::programs());
    let output = Command::new(programs.join("tracer"))
        .args(["record", "-o"])
        .arg(dir.path().join("t.trace"))
        .args(more)
        .arg("--")
        .arg(programs.join("kfd-sim"))
        .arg("--root")
        .arg(root)
        .args(["--asic", "gfx942", "--truth"])
        .arg(dir.path().join("truth.jsonl"))
        .args(
            [dir.path(), &programs]
                .iter()
                .chain(visible)
                .flat_map(|path| ["--bind".as_ref(), path.as_os_str()]),
        )
        .arg("--")
        .args(command)
        .output()
        .expect("tracer runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Run::read(dir, output)
}

/// Records the native program.
fn native(more: &[&str], rounds: &str) -> Run {
    let program = place::programs().join("stack-calls");
    recorded(
        &place::rootfs("trixie-hip"),
        more,
        &[],
        &[program.as_os_str(), rounds.as_ref()],
    )
}

fn export(run: &Run, more: &[&str]) -> Output {
    Command::new(place::programs().join("tracer"))
        .arg("export")
        .arg(run.trace.dir())
        .args(more)
        .args(["-o", "-"])
        .output()
        .expect("tracer runs")
}

/// Returns the lines of the folded stacks: the frames, and the number of dispatches.
fn folded(run: &Run) -> Vec<(Vec<String>, u64)> {
    let output = export(run, &["--stacks"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("simulated: "), "{said}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let line = |line: &str| {
        let (frames, count) = line.rsplit_once(' ').expect("a count");
        let frames = frames.split(';').map(str::to_owned).collect();
        (frames, count.parse().expect("a number"))
    };
    text.lines().map(line).collect()
}

/// Returns the dispatches that the device saw.
fn on_device(run: &Run) -> u64 {
    let packets = run
        .queues()
        .filter(|row| row.is_aql())
        .flat_map(|row| &run.truth_of(row).packets);
    packets.filter(|packet| packet.is_dispatch()).count() as u64
}

/// Returns the functions of a frame's file.
fn of_file(stack: &Stack, file: &str) -> Vec<String> {
    let frames = stack.frames.as_deref().expect("frames").lines();
    let frames = frames.map(|line| line.split('\t').collect::<Vec<_>>());
    frames
        .filter(|fields| fields[1] == file)
        .map(|fields| fields[0].to_owned())
        .collect()
}

#[test]
fn every_launch_has_the_functions_of_its_program() {
    let run = native(&["--stacks"], "25");
    let launches: Vec<&Stack> = run
        .stacks()
        .filter(|stack| {
            of_file(stack, "stack-calls")
                .iter()
                .any(|name| name == "stack_calls::launch")
        })
        .collect();
    for stack in &launches {
        let own = of_file(stack, "stack-calls");
        let chain = ["main", "outer", "inner", "launch"].map(|name| format!("stack_calls::{name}"));
        assert_eq!(own[own.len() - 4..], chain, "{stack:?}");
        assert_eq!(own[..2], ["_start", "main"], "{stack:?}");
        assert!(stack.complete, "{stack:?}");
        // Evidence of each frame of a file: the address, and the file's build id, except of programs that have none.
        for line in stack.frames.as_deref().unwrap_or_default().lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            assert!(fields.len() == 4 && fields[2].starts_with("0x"), "{line}");
            assert!(!fields[1].starts_with("libamdhip64") || fields[3].len() == 40, "{line}");
        }
    }
    let folded = folded(&run);
    let fills = folded
        .iter()
        .filter(|(frames, _)| frames.iter().any(|frame| frame == "stack_calls::launch"));
    let filled = fills
        .clone()
        .filter(|(frames, _)| frames.last().is_some_and(|kernel| kernel.contains("fillBuffer")));
    assert_eq!(filled.map(|(_, count)| count).sum::<u64>(), 25, "{folded:?}");
    assert_eq!(folded.iter().map(|(_, count)| count).sum::<u64>(), on_device(&run));
    assert!(folded.iter().all(|(frames, _)| frames[0] == "_start"), "{folded:?}");
    assert_eq!(run.stacks().count(), run.doorbells().count());

    let fill = run
        .dispatches()
        .find(|row| row.kernel.as_deref().is_some_and(|name| name.contains("fillBuffer")));
    let fill = fill.expect("a fill");
    let place = format!("{}:{}", fill.queue, fill.index);
    let path = Command::new(place::programs().join("tracer"))
        .arg("path")
        .arg(run.trace.dir())
        .arg(place)
        .output()
        .expect("tracer runs");
    let path = String::from_utf8_lossy(&path.stdout).into_owned();
    let lines: Vec<&str> = path.lines().map(str::trim).collect();
    let launch = lines
        .iter()
        .position(|line| *line == "stack_calls::launch")
        .expect(&path);
    assert_eq!(
        lines[launch + 1..launch + 4],
        ["inner", "outer", "main"].map(|name| format!("stack_calls::{name}"))
    );
    assert!(path.lines().all(|line| line.len() <= 80), "{path}");
}

#[test]
fn functions_of_python_are_frames() {
    let root = place::clients().join("sid");
    if !root.join("usr/bin/python3").exists() {
        eprintln!("NOT TESTED: stacks of Python: {} has no python3", root.display());
        return;
    }
    let clients = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/clients"));
    let script = clients.join("stacks.py");
    let command = ["/usr/bin/python3", "-X", "perf"].map(OsStr::new);
    let command: Vec<&OsStr> = command.into_iter().chain([script.as_os_str()]).collect();
    let run = recorded(&root, &["--stacks"], &[clients], &command);
    let folded = folded(&run);
    let mut filled = 0;
    for (frames, count) in folded {
        let kernel = frames.last().expect("a kernel");
        if !kernel.contains("fillBuffer") {
            continue;
        }
        filled += count;
        let python: Vec<&str> = frames.iter().filter_map(|frame| frame.strip_prefix("py::")).collect();
        let expected = ["<module>", "main", "outer", "inner"].map(|name| format!("{name}:{}", script.display()));
        assert_eq!(python, expected, "{frames:?}");
        assert_eq!(frames[0], "_start");
    }
    assert_eq!(filled, 8);
}

#[test]
fn stacks_above_the_limit_are_counted() {
    let run = native(&["--stacks", "--stack-limit", "5"], "400");
    let (stacks, doorbells) = (run.stacks().count() as u64, run.doorbells().count() as u64);
    let over = run.trace.manifest().losses.get("stack-limit").copied().unwrap_or(0);
    assert!(over > 0 && stacks > 0, "{stacks} {over}");
    assert_eq!(stacks + over, doorbells);
    // Doorbells are all there.
    assert_eq!(run.dispatches().count() as u64, on_device(&run));
    let folded = folded(&run);
    assert_eq!(folded.iter().map(|(_, count)| count).sum::<u64>(), on_device(&run));
    let without: u64 = folded
        .iter()
        .filter(|(frames, _)| frames[0] == "[no stack]")
        .map(|(_, count)| count)
        .sum();
    assert!(without > 300, "{folded:?}");
}

#[test]
fn without_the_option_there_are_none() {
    let run = native(&[], "3");
    assert_eq!(run.stacks().count(), 0);
    let output = export(&run, &["--format", "folded"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("record --stacks"), "{said}");
    assert!(run.dispatches().all(|row| row.path.name() == "doorbell"));
}
