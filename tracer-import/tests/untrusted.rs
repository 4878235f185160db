//! Damaged text: no line makes the importer panic, and every line is counted.

use proptest::prelude::*;
use tracer_core::model::Model;
use tracer_import::{Found, Importer, MAX_LINE, MAX_MALFORMED, MAX_NAMES};

/// Real texts of every kind.
const TEXTS: [&str; 6] = [
    include_str!("data/6.1.0-56-amd64.txt"),
    include_str!("data/7.2.13+deb14-amd64.txt"),
    include_str!("data/trace-cmd-3.1.6-linux-6.12.txt"),
    include_str!("data/strace-6.1.txt"),
    include_str!("data/script-linux-6.12.txt"),
    LOG,
];

/// Lines of HIP 7.2 and of the HSA runtime.
const LOG: &str = ":3:rocdevice.cpp :2952: 7132614144 us: [pid:27271 tid: 0x7fa36c1817c0] Created SWq=0x7fa369eb8000 to map on \
    HWq=0x7fa361000000 with size 16384 with priority 1, cooperative: 0\n:3:rocvirtual.cpp :3631: 7132645360 us: [pid:27271 tid: \
    0x7fa36c1817c0] ShaderName : vector_add\n:5:rocvirtual.cpp :1165: 7132645367 us: [pid:27271 tid: 0x7fa36c1817c0] \
    SWq=0x7fa369eb0000, HWq=0x7fa360200000, id=2, Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, release=1), setup=1, \
    grid=[12288, 1, 1], workgroup=[256, 1, 1], private_seg_size=0, group_seg_size=0, kernel_obj=0x7fa369a75740, \
    kernarg_address=0x7fa241e00100, completion_signal=0x0, correlation_id=0, rptr=0, wptr=18446744073709551615\n";

/// Imports lines of bytes, with everything that the model concludes.
fn import(text: &[u8]) -> Found {
    let (mut importer, mut model) = (Importer::new(), Model::new());
    for line in text.split(|&byte| byte == b'\n') {
        importer.line(line, &mut |event| model.apply(event, &mut |_| ()));
    }
    let found = importer.finish(&mut |event| model.apply(event, &mut |_| ()));
    model.finish(u64::MAX, &mut |_| ());
    found
}

proptest! {
    #[test]
    fn damaged_bytes_are_only_counted(
        text in 0..TEXTS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..200),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = TEXTS[text].as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(end.index(bytes.len()) + 1);
        let found = import(&bytes);
        let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
        prop_assert_eq!(found.lines, lines);
        prop_assert!(found.events + found.unused_total + found.foreign + found.malformed_total <= lines);
        prop_assert!(found.malformed.len() <= MAX_MALFORMED && found.unused.len() <= MAX_NAMES);
        prop_assert!(found.unused.keys().all(|name| name.is_ascii() && name.len() <= 64), "{:?}", found.unused);
    }

    #[test]
    fn numbers_at_their_limits_are_only_counted(number in any::<u64>(), text in 0..TEXTS.len()) {
        // Every number of the text becomes this one.
        let mut changed = String::new();
        for part in TEXTS[text].split_inclusive(|c: char| !c.is_ascii_digit()) {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            if digits.is_empty() {
                changed += part;
            } else {
                changed += &number.to_string();
                changed += &part[digits.len()..];
            }
        }
        prop_assert_eq!(import(changed.as_bytes()).lines, changed.split('\n').count() as u64);
    }
}

#[test]
fn a_long_line_is_malformed() {
    let found = import(&b"x".repeat(MAX_LINE + 1));
    assert_eq!((found.lines, found.malformed_total, found.malformed[0].line), (1, 1, 1));
    assert!(found.malformed[0].text.len() < 1000);
}
