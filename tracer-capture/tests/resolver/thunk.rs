//! The bytes that decide whether doorbells are handed over, in copies of a library whose functions decide in another way. No answer
//! is right for them. A wrong answer would make tracer count doorbells that no function stores to.

use tracer_capture::runtime::resolver::{DoorbellSite, Resolution, resolve};

use super::library;
use super::patch::Patched;

/// `cmpb $0,flag(%rax)`, before and after the flag. A conditional jump of two bytes follows it.
const COMPARE: ([u8; 2], u8) = ([0x80, 0xb8], 0);
const COMPARE_LEN: u64 = 7;
/// Places of the comparisons in 7.2.4: two for each function that rings.
const COMPARES_OF_7_2_4: [u64; 6] = [0x66a85, 0x66a8e, 0x66c95, 0x66c9e, 0x66cfb, 0x66d18];

/// Returns each runtime that can hand over, with its resolution.
fn runtimes() -> Vec<(String, Vec<u8>, Resolution)> {
    let all = library::all().into_iter().map(|(suite, bytes)| {
        let resolution = resolve(&bytes).expect("an HSA runtime");
        (suite, bytes, resolution)
    });
    let able: Vec<_> = all.filter(|(.., resolution)| resolution.may_hand_over()).collect();
    assert!(!able.is_empty(), "no runtime from 7.2 on: nothing was tested");
    able
}

/// Returns the file range of a function's code, up to its last store.
fn code(site: &DoorbellSite) -> std::ops::Range<u64> {
    let to_file = |vaddr: u64| vaddr - site.probe.vaddr + site.probe.file_offset;
    let last = site.doorbell_stores.iter().max().expect("it rings");
    site.probe.file_offset - (site.probe.vaddr - site.probe.function)..to_file(*last)
}

/// Returns the file offsets of the comparisons of one flag in a function.
fn compares(bytes: &[u8], site: &DoorbellSite, flag: i32) -> Vec<u64> {
    let wanted = [&COMPARE.0[..], &flag.to_le_bytes(), &[COMPARE.1]].concat();
    let code = code(site);
    let windows = bytes[code.start as usize..code.end as usize].windows(wanted.len());
    let found = windows.enumerate().filter(|(_, window)| *window == wanted);
    found.map(|(at, _)| code.start + at as u64).collect()
}

/// Asserts that the functions are found as before, that the function at `changed` has no flags, and that the runtime therefore has
/// none.
fn assert_unknown(suite: &str, what: &str, before: &Resolution, after: &Resolution, changed: u64) {
    let places = |r: &Resolution| -> Vec<_> { r.doorbells.iter().map(|site| site.probe).collect() };
    assert_eq!(places(before), places(after), "{suite}: {what} in {changed:#x}");
    assert!(after.may_hand_over(), "{suite}: {what} in {changed:#x}");
    assert_eq!(after.thunk_flags(), None, "{suite}: {what} in {changed:#x}");
    for site in &after.doorbells {
        let known = site.probe.function != changed;
        assert_eq!(
            site.thunk_flags.is_some(),
            known,
            "{suite}: {what} in {changed:#x}: {site:x?}"
        );
    }
}

#[test]
fn a_flag_that_is_tested_in_another_way_leaves_it_unknown() {
    for (suite, bytes, before) in runtimes() {
        let flags = &before.thunk_flags().expect("understood").flags;
        let mut all = Vec::new();
        for site in &before.doorbells {
            for &flag in flags {
                let found = compares(&bytes, site, flag);
                assert!(!found.is_empty(), "{suite}: {flag:#x} is not compared in {site:x?}");
                all.extend(found.iter().map(|at| (*at, site.probe.function)));
            }
        }
        all.sort_unstable();
        if before.build_id.as_deref() == Some(super::known::EXPERIMENTAL) {
            let places: Vec<u64> = all.iter().map(|(at, _)| *at).collect();
            assert_eq!(places, COMPARES_OF_7_2_4);
        }
        for (at, function) in all {
            let jump = at + COMPARE_LEN;
            let inverted = bytes[jump as usize] ^ 1;
            let changes = [
                ("compared with 1", at + 6, 1),
                ("four bytes compared", at, 0x83),
                ("a byte behind rcx", at + 1, 0xb9),
                ("jumps where it is the other", jump, inverted),
            ];
            for (what, offset, byte) in changes {
                let after = Patched(bytes.clone()).write(offset, &[byte]).resolve();
                assert_unknown(&suite, what, &before, &after, function);
            }
        }
    }
}

/// The flags' offsets are those in the code. If functions check different flags, no answer holds for all of them.
#[test]
fn flags_are_where_the_code_has_them_and_the_same_for_all() {
    for (suite, bytes, before) in runtimes() {
        let known = before.thunk_flags().expect("understood");
        let (last, moved) = (*known.flags.last().expect("flags"), 0x1234);
        let mut library = Patched(bytes);
        for (changed, site) in before.doorbells.iter().enumerate() {
            for at in compares(&library.0, site, last) {
                library = library.write(at + 2, &i32::to_le_bytes(moved));
            }
            let after = library.resolve();
            let all = changed + 1 == before.doorbells.len();
            let mut expected = known.clone();
            *expected.flags.last_mut().expect("flags") = moved;
            assert_eq!(
                after.doorbells[changed].thunk_flags.as_ref(),
                Some(&expected),
                "{suite}"
            );
            assert_eq!(after.thunk_flags(), all.then_some(&expected), "{suite}: {changed}");
        }
    }
}
