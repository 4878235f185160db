//! The programs for amdgpu's trace events read the fields that a layout names. Only a real GPU's driver raises those events, so the
//! test attaches a program to another kernel event with known fields, and passes a layout of these.

#![expect(clippy::unwrap_used, reason = "a test fails by it, with the line")]

use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
};

use aya::{
    EbpfLoader, Pod,
    maps::{HashMap, RingBuf},
    programs::TracePoint,
};
use tracer_capture::{DriverEventKind, decode, kernel::ebpf_object::Object, sys};
use tracer_common::{
    offset::ABSENT,
    record::{DriverEventLayout, Header, driver_event_flags},
};
use tracer_core::words::Named;
use tracer_core::{event::Event, tables::DriverEvent};

/// A layout in the form that the programs take.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Plain(DriverEventLayout);
// SAFETY: `repr(C)` with u32 fields only.
unsafe impl Pod for Plain {}

/// An owned copy of one reported event.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    pid: u32,
    ring: Option<String>,
    context: Option<u64>,
    seqno: Option<u64>,
    vmid: Option<u32>,
    bytes: Option<u64>,
    traced: bool,
}

/// Attaches the program to `sched:sched_process_exec`, runs a command, and returns the events of its two execs: one of a shell,
/// which is not traced yet, and one of /bin/true, which is traced.
fn of_execs(program: &str, variable: &str, layout: DriverEventLayout, kind: DriverEventKind) -> [Seen; 2] {
    let layout = Plain(layout);
    let mut ebpf = EbpfLoader::new()
        .override_global(variable, &layout, true)
        .load(object())
        .expect("the object loads; root is needed");
    let probe: &mut TracePoint = ebpf.program_mut(program).unwrap().try_into().unwrap();
    probe.load().unwrap();
    probe.attach("sched", "sched_process_exec").unwrap();
    let mut events = RingBuf::try_from(ebpf.take_map("EVENTS").unwrap()).unwrap();
    let mut traced: HashMap<_, u32, u32> = ebpf.take_map("TRACED").unwrap().try_into().unwrap();
    let mut child = Command::new("/bin/sh")
        .args(["-c", "echo runs; read line; exec /bin/true"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    // Its own exec is complete once it prints.
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    traced.insert(pid, 1, 0).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
    let mut seen = Vec::new();
    while let Some(item) = events.next() {
        let header = header(&item);
        let known = decode::record(&item, &Default::default(), &mut (), &mut |event| {
            // Other processes on this machine may exec too. They have other ids.
            if let Event::DriverEvent(event) = event
                && header.tgid == pid
            {
                assert_eq!(event.event, kind.name());
                seen.push(owned(&header, event));
            }
        });
        assert!(known, "a record that decoding does not know");
    }
    seen.try_into().expect("two execs")
}

/// Returns the head of a record, which has the process also of an event that the row attributes to nobody.
fn header(record: &[u8]) -> Header {
    assert!(record.len() >= size_of::<Header>());
    // SAFETY: long enough, and any bytes are a valid `Header`.
    unsafe { record.as_ptr().cast::<Header>().read_unaligned() }
}

fn owned(header: &Header, event: &DriverEvent) -> Seen {
    Seen {
        pid: header.tgid,
        ring: event.ring.clone(),
        context: event.context,
        seqno: event.seqno,
        vmid: event.vmid,
        bytes: event.bytes,
        traced: header.flags & driver_event_flags::TRACED != 0,
    }
}

fn object() -> &'static [u8] {
    Object::Plain.bytes().expect("built by xtask")
}

/// Returns the offset of a field, from the kernel's format file.
fn offset(field: &str) -> u32 {
    sys::ensure_tracefs().unwrap();
    let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let text = roots
        .iter()
        .find_map(|root| fs::read_to_string(format!("{root}/events/sched/sched_process_exec/format")).ok())
        .expect("every kernel with tracing has it");
    let line = text.lines().find(|line| line.contains(&format!(" {field};"))).unwrap();
    let (_, rest) = line.split_once("offset:").unwrap();
    rest.split(';').next().unwrap().parse().unwrap()
}

/// `__data_loc char[] filename; pid_t pid; pid_t old_pid` (include/trace/events/sched.h).
fn layout() -> DriverEventLayout {
    DriverEventLayout {
        ring: offset("filename"),
        context: offset("pid"),
        seqno: offset("old_pid"),
        fence_bytes: 4,
        vmid: offset("pid"),
        ..DriverEventLayout::NONE
    }
}

#[test]
fn names_and_short_numbers_are_read_where_the_layout_says() {
    let seen = of_execs(
        "driver_event_flush",
        "DRIVER_EVENT_FLUSH",
        layout(),
        DriverEventKind::VmFlush,
    );
    let pid = seen[0].pid;
    let expected = |file: &str, traced| Seen {
        pid,
        ring: Some(file.to_owned()),
        context: Some(u64::from(pid)),
        seqno: Some(u64::from(pid)),
        vmid: Some(pid),
        bytes: None,
        traced,
    };
    assert_eq!(seen, [expected("/bin/sh", false), expected("/bin/true", true)]);
}

#[test]
fn eight_bytes_are_read_as_eight_and_absent_fields_are_null() {
    let long = DriverEventLayout {
        // `pid` and the `old_pid` behind it, as one number.
        context: offset("pid"),
        seqno: ABSENT,
        fence_bytes: 8,
        bytes: offset("pid"),
        ..DriverEventLayout::NONE
    };
    assert_eq!(offset("old_pid"), offset("pid") + 4);
    let [_, seen] = of_execs("driver_event_cs", "DRIVER_EVENT_CS", long, DriverEventKind::CsIoctl);
    let both = u64::from(seen.pid) << 32 | u64::from(seen.pid);
    let expected = Seen {
        pid: seen.pid,
        ring: None,
        context: Some(both),
        seqno: None,
        vmid: None,
        bytes: Some(both),
        traced: true,
    };
    assert_eq!(seen, expected);
}

/// Each program reports the event that it is for, and reads by the layout of that event.
#[test]
fn every_program_names_its_event() {
    for (program, variable, kind) in [
        ("driver_event_cs", "DRIVER_EVENT_CS", DriverEventKind::CsIoctl),
        ("driver_event_run", "DRIVER_EVENT_RUN", DriverEventKind::SchedRunJob),
        ("driver_event_move", "DRIVER_EVENT_MOVE", DriverEventKind::BoMove),
        ("driver_event_flush", "DRIVER_EVENT_FLUSH", DriverEventKind::VmFlush),
        (
            "driver_event_cleaner",
            "DRIVER_EVENT_CLEANER",
            DriverEventKind::CleanerShader,
        ),
    ] {
        let [_, seen] = of_execs(program, variable, layout(), kind);
        assert_eq!(seen.ring.as_deref(), Some("/bin/true"), "{program}");
    }
}
