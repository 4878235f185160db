//! A real text of strace 6.1: a program with several threads on the simulated GPU, which wrote down every ioctl that it answered.

use std::collections::BTreeMap;

use serde::Deserialize;
use tracer_core::event::Event;
use tracer_core::tables::{Fact, Ioctl};
use tracer_import::{Found, Importer, Kind};

/// An ioctl that the simulated device answered.
#[derive(Deserialize)]
struct Answered {
    pid: u32,
    tid: u32,
    dev: String,
    name: String,
    ret: i64,
    cmd: u32,
}

/// Returns the ioctls, the programs that were started, and what was found.
fn import(text: &str) -> (Vec<Ioctl>, Vec<(u32, String)>, Found) {
    let (mut ioctls, mut programs) = (Vec::new(), Vec::new());
    let mut take = |event: &Event<'_>| match event {
        Event::Logged(Fact::Ioctl(row)) => ioctls.push(row.clone()),
        Event::Exec(origin, comm) => programs.push((origin.pid, String::from_utf8_lossy(comm).into_owned())),
        Event::Fork(..) | Event::Exit(..) => {}
        other => panic!("{other:?}"),
    };
    let mut importer = Importer::new();
    for line in text.lines() {
        importer.line(line.as_bytes(), &mut take);
    }
    let found = importer.finish(&mut take);
    (ioctls, programs, found)
}

const TEXT: &str = include_str!("data/strace-6.1.txt");

#[test]
fn every_ioctl_is_that_of_the_device() {
    let (ioctls, programs, found) = import(TEXT);
    let truth = include_str!("data/strace-6.1.truth.jsonl").lines();
    let truth: Vec<Answered> = truth.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(found.kind, Some(Kind::Strace));
    assert_eq!(
        (found.events, found.malformed_total, found.lost),
        (truth.len() as u64, 0, 0),
        "{found:?}"
    );
    assert_eq!(found.without_process, 0);
    // Each thread's calls are in the same order. The device's clock is another one.
    type Calls = Vec<(u32, &'static str, String, Option<i64>)>;
    let mut by_strace: BTreeMap<u32, Calls> = BTreeMap::new();
    for row in &ioctls {
        let call = (row.pid, row.device, row.name.to_string(), row.ret);
        by_strace.entry(row.tid).or_default().push(call);
    }
    let mut by_device: BTreeMap<u32, Calls> = BTreeMap::new();
    for call in &truth {
        let (device, name) = match (&*call.dev, &*call.name) {
            ("kfd", name) => ("kfd", name.to_owned()),
            (_, name) if name.starts_with("AMDGPU") => ("drm", name.to_owned()),
            (_, name) => ("drm", format!("DRM_{name}")),
        };
        let entry = (call.pid, device, name, Some(call.ret));
        by_device.entry(call.tid).or_default().push(entry);
    }
    assert!(by_device.len() > 2, "several threads");
    assert_eq!(by_strace, by_device);
    // strace names a command only if it knows this size of its argument.
    let numbers: Vec<u32> = ioctls.iter().map(|row| row.cmd).filter(|&cmd| cmd != 0).collect();
    assert!(!numbers.is_empty() && numbers.iter().all(|cmd| truth.iter().any(|call| call.cmd == *cmd)));
    assert!(ioctls.iter().all(|row| row.exit_ns > row.enter_ns));
    let program = (truth[0].pid, "hsa-dispatch".to_owned());
    assert!(programs.contains(&program), "{programs:?}");
}

#[test]
fn threads_without_their_creation_have_no_process() {
    let without: Vec<&str> = TEXT
        .lines()
        .filter(|line| !line.contains("clone") && !line.contains("execve"))
        .collect();
    let (ioctls, _, found) = import(&without.join("\n"));
    assert!(!ioctls.is_empty() && ioctls.iter().all(|row| row.pid == 0 && row.tid != 0));
    assert_eq!(found.without_process, found.events);
}

#[test]
fn calls_that_are_cut_are_counted() {
    let line = |text: &str| format!("7 1795650069.000001 execve(\"/bin/app\", 0, 0) = 0 <0.000001>\n{text}");
    let found = |text: &str| import(&line(text)).2;
    let begun = "7 1795650069.000002 ioctl(3, AMDKFD_IOC_SET_EVENT, 0x7f <unfinished ...>";
    assert_eq!((found(begun).events, found(begun).lost), (0, 1));
    let resumed = "7 1795650069.000002 <... ioctl resumed>) = 0 <0.000002>";
    assert_eq!((found(resumed).events, found(resumed).lost), (0, 1));
    let untimed = found("7 1795650069.000002 ioctl(3, AMDKFD_IOC_SET_EVENT, 0x7f) = 0");
    assert_eq!(
        (untimed.events, untimed.malformed_total, untimed.malformed[0].line),
        (0, 1, 2)
    );
    let other = found("7 1795650069.000002 ioctl(1, TCGETS, {c_iflag=0}) = 0 <0.000001>");
    assert_eq!((other.events, other.unused_total), (0, 1));
    let failed = "7 1795650069.000002 ioctl(3, AMDKFD_IOC_SET_EVENT, 0x7f) = -1 EINVAL (Invalid argument) <0.000003>";
    let (ioctls, programs, _) = import(&line(failed));
    let [row] = &ioctls[..] else { panic!("{ioctls:?}") };
    assert_eq!(
        (row.ret, row.exit_ns - row.enter_ns, row.pid, row.fd),
        (Some(-22), 3000, 7, 3)
    );
    assert_eq!(programs, [(7, "app".to_owned())]);
    // A thread that is not the first one runs a program.
    let superseded = "7 1795650069.000002 +++ superseded by execve in pid 8 +++\n7 1795650069.000003 <... execve resumed>) = 0 <0.1>";
    assert_eq!((found(superseded).lost, found(superseded).foreign), (0, 0));
}
