use tracer_core::event::{Doorbell, Event, Ioctl};

use crate::{Found, Importer, Kind};

const HEADER: &str = "# tracer capture 1: doorbells kernel_rings packets ioctls";
const END: &str = "sh-1 (1) [000] ..... 99.000000: tracing_mark_write: tracer_script_end";

/// What came out.
#[derive(Debug, PartialEq, Eq)]
enum Out {
    /// Value, first, end, unreadable, beyond.
    Rang(u64, u64, u64, bool, bool),
    /// First index, and the second word of each packet.
    Packets(u64, Vec<u64>),
    /// Command, result, argument before and after.
    Ioctl(u32, Option<i64>, Option<Vec<u8>>, Option<Vec<u8>>),
}

fn import(lines: &[&str]) -> (Vec<Out>, Found) {
    let mut all = Vec::new();
    let mut out = |event: &Event<'_>| {
        all.push(match event {
            Event::Doorbell(d) => {
                let Doorbell {
                    value,
                    first,
                    end,
                    unreadable,
                    beyond,
                    ..
                } = *d;
                Out::Rang(value, first, end, unreadable, beyond)
            }
            Event::Packets(walk) => {
                let second = |packet: &tracer_common::aql::Packet| u64::from(packet.bytes[8]);
                Out::Packets(walk.first, walk.packets.iter().map(second).collect())
            }
            Event::Ioctl(Ioctl {
                cmd,
                ret,
                arg_in,
                arg_out,
                ..
            }) => Out::Ioctl(*cmd, *ret, arg_in.map(<[u8]>::to_vec), arg_out.map(<[u8]>::to_vec)),
            Event::There(_) => return,
            other => panic!("{other:?}"),
        });
    };
    let mut importer = Importer::new();
    for line in lines {
        importer.line(line.as_bytes(), &mut out);
    }
    let found = importer.finish(&mut out);
    (all, found)
}

fn line(time: &str, event: &str) -> String {
    format!("app-7 (7) [000] ..... 1.{time}: {event}")
}

/// A doorbell of a queue with a ring of 16 packets.
fn doorbell(time: &str, value: u64, write: u64, read: u64) -> String {
    line(
        time,
        &format!("tracer_doorbell_0: (0x7f) value={value} queue=0x1000 base=4096 size=16 write={write} read={read}"),
    )
}

/// The slots of a doorbell. The second word of packet `i` is `i + 1`, that of slots that never had one is 0.
fn slots(time: &str, name: &str, value: u64) -> String {
    let mut text = format!("{name}: (synthetic.x) queue=0x1000 value={value}");
    for before in 0..8 {
        for word in 0..8 {
            let number = match word {
                0 => 0x2,
                1 => (value + 1).saturating_sub(before),
                _ => 0,
            };
            text += &format!(" p{before}_{word}={number:#x}");
        }
    }
    line(time, &text)
}

fn text(lines: &[String]) -> Vec<Out> {
    let mut all = vec![HEADER];
    all.extend(lines.iter().map(String::as_str));
    all.push(END);
    let (out, found) = import(&all);
    assert_eq!(
        (found.malformed_total, found.foreign, found.lost),
        (0, 0, 0),
        "{found:?}"
    );
    out
}

#[test]
fn a_doorbell_has_the_packets_that_were_read_with_it() {
    let lines = [
        doorbell("000001", 9, 10, 9),
        slots("000002", "tracer_packets", 9),
        doorbell("000003", 10, 11, 9),
        line("000004", "tracer_script_7_slot: queue=4096 value=10"),
        slots("000004", "tracer_packets", 10),
    ];
    let expected = [
        // Nothing is claimed of what the GPU had taken before the first doorbell.
        Out::Packets(9, vec![10]),
        Out::Rang(9, 9, 10, false, false),
        Out::Packets(9, vec![10, 11]),
        Out::Rang(10, 9, 11, false, false),
    ];
    assert_eq!(text(&lines), expected);
}

/// The last slots before the ring's end come in an event of their own, before or after the others.
#[test]
fn slots_before_the_end_of_the_ring_belong_to_a_doorbell_at_its_start() {
    for order in [
        ["tracer_packets", "tracer_wrapped"],
        ["tracer_wrapped", "tracer_packets"],
    ] {
        let lines = [
            doorbell("000001", 12, 13, 12),
            slots("000002", "tracer_packets", 12),
            doorbell("000003", 17, 18, 12),
            slots("000004", order[0], 17),
            slots("000005", order[1], 17),
        ];
        let expected = [
            Out::Packets(12, vec![13]),
            Out::Rang(12, 12, 13, false, false),
            Out::Packets(12, vec![13, 14, 15, 16, 17, 18]),
            Out::Rang(17, 12, 18, false, false),
        ];
        assert_eq!(text(&lines), expected);
    }
}

/// As the recipe for bpftrace prints them: a line for each slot, all with the time of the doorbell.
#[test]
fn slots_may_have_a_line_each() {
    let whole = slots("000001", "tracer_packets", 3);
    let slot = |before: u64| {
        let (line, _) = whole.split_once(" p").unwrap();
        let words = whole.split_ascii_whitespace();
        let own = words.filter(|word| word.starts_with(&format!("p{before}_")));
        own.fold(line.to_owned(), |line, word| format!("{line} {word}"))
    };
    let lines = [doorbell("000001", 3, 4, 0), slot(0), slot(1), slot(2), slot(3)];
    let expected = [Out::Packets(0, vec![1, 2, 3, 4]), Out::Rang(3, 0, 4, false, false)];
    assert_eq!(text(&lines), expected);
}

#[test]
fn what_was_not_read_is_not_claimed() {
    // Without packets, and of a batch that is longer than what the script reads.
    let lines = [doorbell("000001", 0, 1, 0), doorbell("000003", 11, 12, 0)];
    let expected = [Out::Rang(0, 1, 1, true, false), Out::Rang(11, 12, 12, true, false)];
    assert_eq!(text(&lines), expected);
    let lines = [
        doorbell("000001", 0, 1, 0),
        slots("000002", "tracer_packets", 0),
        doorbell("000003", 11, 12, 0),
        slots("000004", "tracer_packets", 11),
    ];
    assert_eq!(
        text(&lines)[2..],
        [Out::Packets(4, (5..=12).collect()), Out::Rang(11, 4, 12, false, false)]
    );
    // A slot of which one word could not be read, and those before it.
    let cut = slots("000002", "tracer_packets", 9).replace("p2_3=0x0", "p2_3=(fault)");
    let lines = [doorbell("000001", 9, 10, 0), cut];
    assert_eq!(
        text(&lines),
        [Out::Packets(8, vec![9, 10]), Out::Rang(9, 8, 10, false, false)]
    );
    // A queue that could not be read.
    let faults = line(
        "000001",
        "tracer_doorbell_0: (0x7f) value=9 queue=(fault) base=(fault) size=(fault) write=(fault) read=(fault)",
    );
    assert_eq!(text(&[faults]), [Out::Rang(9, 0, 0, true, false)]);
}

#[test]
fn a_value_that_nobody_reserved_has_no_packets() {
    let lines = [doorbell("000001", 1000, 3, 2), slots("000002", "tracer_packets", 1000)];
    assert_eq!(text(&lines), [Out::Rang(1000, 3, 3, false, true)]);
}

/// Its write index begins again.
#[test]
fn another_queue_at_the_same_place_begins_again() {
    let lines = [
        doorbell("000001", 12, 13, 12),
        slots("000002", "tracer_packets", 12),
        doorbell("000003", 0, 1, 0),
        slots("000004", "tracer_packets", 0),
    ];
    assert_eq!(
        text(&lines)[2..],
        [Out::Packets(0, vec![1]), Out::Rang(0, 0, 1, false, false)]
    );
}

#[test]
fn an_ioctl_has_its_argument_before_and_after() {
    // Eight bytes, of the KFD; and what the filter lets through, but is of no GPU.
    let lines = [
        line(
            "000001",
            "tracer_ioctl_enter: (x) fd=3 cmd=0x80084b01 arg=0x10 w0=0x1 w1=0x2",
        ),
        line("000002", "tracer_ioctl_enter: (x) fd=3 cmd=0x40044501 arg=0x10 w0=0x1"),
        line(
            "000003",
            "tracer_ioctl_exit: (x) cmd=0x80084b01 arg=0x10 ret=-22 w0=0x201",
        ),
        line(
            "000004",
            "tracer_ioctl_enter: (x) fd=3 cmd=0x80084b01 arg=0x10 w0=(fault)",
        ),
    ];
    let expected = [
        Out::Ioctl(
            0x8008_4b01,
            Some(-22),
            Some(vec![1, 0, 0, 0, 0, 0, 0, 0]),
            Some(vec![1, 2, 0, 0, 0, 0, 0, 0]),
        ),
        // It did not end.
        Out::Ioctl(0x8008_4b01, None, None, None),
    ];
    assert_eq!(text(&lines), expected);
}

#[test]
fn losses_are_counted() {
    let exit = line("000003", "tracer_ioctl_exit: (x) cmd=0x80084b01 arg=0x10 ret=0 w0=0x1");
    let packets = slots("000002", "tracer_packets", 9);
    let (out, found) = import(&[HEADER, &exit, &packets]);
    assert_eq!(out, []);
    // The entry of the ioctl, and the end of the text; and packets without their doorbell.
    assert_eq!((found.lost, found.malformed_total), (2, 1));
    // The exit of the first ioctl.
    let enter = |time| line(time, "tracer_ioctl_enter: (x) fd=3 cmd=0x80084b01 arg=0x10 w0=0x1");
    let (_, found) = import(&[HEADER, &enter("000001"), &enter("000002"), END]);
    assert_eq!((found.lost, found.malformed_total), (1, 0));
    let (_, found) = import(&[&HEADER.replace(" 1:", " 2:"), END]);
    assert_eq!((found.malformed_total, found.captured), (1, None));
    let (out, _) = import(&[&HEADER.replace(" 1:", " 2:"), &doorbell("000001", 0, 1, 0), END]);
    assert_eq!(out, [], "nothing is read by the rules of another format");
}

#[test]
fn the_first_line_says_what_was_captured() {
    let (_, found) = import(&[
        &HEADER.replace("packets", "miracles"),
        &doorbell("000001", 0, 1, 0),
        END,
    ]);
    let captured = ["doorbells", "kernel_rings", "ioctls"].map(str::to_owned);
    assert_eq!(
        (found.kind, found.captured),
        (Some(Kind::Events), Some(captured.to_vec()))
    );
}

/// The slots were read a moment later: by then other threads had filled the ring again.
#[test]
fn slots_count_as_of_the_time_at_which_they_were_read() {
    let later = slots("000002", "tracer_packets", 9) + " write=40 read=12";
    let lines = [HEADER, &doorbell("000001", 9, 10, 9), &later, END];
    let mut limits = Vec::new();
    let mut importer = Importer::new();
    for line in lines {
        importer.line(line.as_bytes(), &mut |event| {
            if let Event::Packets(walk) = event {
                limits.push((walk.read_index, walk.write_index));
            }
        });
    }
    // At most a ring beyond the read index of then: the slot of packet 9 can have packet 25.
    assert_eq!(limits, [(9, 28)]);
}

/// Nothing follows it that would show that its packets are whole.
#[test]
fn a_doorbell_comes_before_the_end_of_its_queue() {
    let destroy = "cmd=0xc0084b03 arg=0x10";
    let lines = [
        doorbell("000001", 9, 10, 9),
        line("000002", &format!("tracer_ioctl_enter: (x) fd=3 {destroy} w0=0x1")).replace("app-7 ", "app-8 "),
        line("000003", &format!("tracer_ioctl_exit: (x) {destroy} ret=0 w0=0x1")).replace("app-7 ", "app-8 "),
    ];
    let out = text(&lines);
    assert!(matches!(out[..], [Out::Rang(..), Out::Ioctl(..)]), "{out:?}");
}

/// ftrace does not know the process of a thread that it has not seen on a processor yet.
#[test]
fn a_new_thread_is_of_the_process_of_its_creator() {
    let of = |lines: &[&str]| {
        let mut pids = Vec::new();
        let mut importer = Importer::new();
        for line in lines {
            importer.line(line.as_bytes(), &mut |event| {
                if let Event::Ioctl(ioctl) = event {
                    pids.push((ioctl.origin.pid, ioctl.origin.tid));
                }
            });
        }
        let found = importer.finish(&mut |_| ());
        (pids, found.malformed_total)
    };
    let enter = |tid: u32| {
        format!(
            "<...>-{tid} (-------) [000] ..... 1.000002: tracer_ioctl_enter: (x) fd=3 cmd=0x80084b01 arg=0x10 w0=0x1"
        )
    };
    let exit = |tid: u32| {
        format!(
            "<...>-{tid} (-------) [000] ..... 1.000003: tracer_ioctl_exit: (x) cmd=0x80084b01 arg=0x10 ret=0 w0=0x1"
        )
    };
    let thread = line(
        "000001",
        "task_newtask: pid=8 comm=app clone_flags=3d0f00 oom_score_adj=0",
    );
    let process = line(
        "000001",
        "task_newtask: pid=9 comm=app clone_flags=1200000 oom_score_adj=0",
    );
    assert_eq!(of(&[&thread, &enter(8), &exit(8)]), (vec![(7, 8)], 0));
    assert_eq!(of(&[&process, &enter(9), &exit(9)]), (vec![(9, 9)], 0));
    assert_eq!(of(&[&enter(8)]), (vec![], 1), "unknown");
}
