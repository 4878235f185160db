//! Traps in the runtime's list of code objects, and in the files and memory that the list names.

use std::{ffi::CString, os::unix::ffi::OsStrExt};

use tracer_common::r_debug::{L_ADDR, L_NAME, L_NEXT, LINK_MAP_LEN, R_MAP};

use crate::{
    Mode, Scene,
    memory::{IMPOSSIBLE, NOWHERE, PAGE, at_the_end, keep, keep_bytes, poke},
};

/// An escape sequence that a terminal executes, and a command that a CI system executes.
const ESCAPES: &[u8] = b"\x1b]0;owned\x07\x1b[2J\r\n::error::owned\n";

/// All modes, with their names.
pub const MODES: [Mode; 21] = [
    ("list-loops", |scene| {
        let node = node(0, b"file:///nowhere\0", 0);
        poke(node + L_NEXT as u64, node);
        publish(scene, node);
    }),
    ("list-loops-with-long-names", |scene| {
        let mut name = b"file:///".to_vec();
        name.resize(12_000, b'a');
        name.push(0);
        let node = node(0, &name, 0);
        poke(node + L_NEXT as u64, node);
        publish(scene, node);
    }),
    ("list-of-20000", |scene| {
        let first = (0..20_000).fold(0, |next, _| node(next, b"memory://1#offset=8&size=8\0", next));
        publish(scene, first);
    }),
    ("list-nowhere", |scene| publish(scene, NOWHERE)),
    ("list-impossible", |scene| publish(scene, IMPOSSIBLE)),
    ("list-ends-nowhere", |scene| {
        publish(scene, node(0, b"file:///nowhere\0", NOWHERE));
    }),
    ("list-at-the-end-of-memory", |scene| {
        publish(scene, at_the_end(&[0; LINK_MAP_LEN - 8]));
    }),
    ("name-nowhere", |scene| {
        let node = node(0, b"\0", 0);
        poke(node + L_NAME as u64, NOWHERE);
        publish(scene, node);
    }),
    ("name-of-64-kib", |scene| {
        let mut name = vec![b'a'; 64 << 10];
        name.push(0);
        publish(scene, node(0, &name, 0));
    }),
    ("name-without-end", |scene| {
        let node = node(0, b"\0", 0);
        poke(node + L_NAME as u64, at_the_end(&[b'a'; 100]));
        publish(scene, node);
    }),
    ("uri-of-a-fifo", |scene| {
        let path = scene.folder.join("fifo");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        // SAFETY: the name is a C string.
        unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
        uri(scene, &[b"file://", path.as_os_str().as_bytes()].concat());
    }),
    ("uri-of-devices", |scene| {
        let paths = ["zero", "kfd", "tty", "full", "dri/renderD128"].map(|name| format!("file:///dev/{name}\0"));
        let first = paths.iter().fold(0, |next, path| node(next, path.as_bytes(), next));
        publish(scene, first);
    }),
    ("uri-of-a-folder", |scene| uri(scene, b"file:///#offset=0&size=4096")),
    ("uri-that-leads-up", |scene| {
        uri(scene, b"file://../../../../../../etc/passwd#offset=0&size=64");
    }),
    ("uri-of-garbage", |scene| {
        uri(scene, b"file:///%zz%4%00%e2%82#offset=0x&size=-1&&&===");
    }),
    ("uri-with-escapes", |scene| uri(scene, &[b"file:///", ESCAPES].concat())),
    ("memory-beyond", |scene| {
        uri(scene, b"memory://1#offset=0xfffffffffffff000&size=0x2000");
    }),
    ("memory-without-end", |scene| {
        let code = keep_bytes(scene.code.clone());
        uri(scene, format!("memory://1#offset={code}&size={}", u64::MAX).as_bytes());
    }),
    ("memory-of-nothing", |scene| uri(scene, b"memory://1#offset=8&size=0")),
    ("code-with-huge-counts", |scene| {
        let mut code = scene.code.clone();
        // Offset of section headers, their count, and the count of program headers (elf.h).
        code[0x28..0x30].copy_from_slice(&0x40_u64.to_le_bytes());
        code[0x3c..0x3e].copy_from_slice(&u16::MAX.to_le_bytes());
        code[0x38..0x3a].copy_from_slice(&u16::MAX.to_le_bytes());
        in_memory(scene, code);
    }),
    ("code-with-escapes-in-names", |scene| {
        let mut code = scene.code.clone();
        for at in 0..code.len().saturating_sub(4) {
            if code[at..].starts_with(b"fill") {
                code[at..at + 4].copy_from_slice(b"\x1b[2J");
            }
        }
        in_memory(scene, code);
    }),
];

/// Creates an entry with that name and that successor.
fn node(base: u64, name: &[u8], next: u64) -> u64 {
    let mut words = [0_u64; LINK_MAP_LEN / 8];
    words[L_ADDR / 8] = base;
    words[L_NAME / 8] = keep_bytes(name.to_vec());
    words[L_NEXT / 8] = next;
    keep(words)
}

/// Publishes this as the list.
fn publish(scene: &Scene, first: u64) {
    scene.runtime.submit(2);
    poke(scene.runtime.debug + R_MAP as u64, first);
    scene.runtime.announce();
    scene.runtime.submit(2);
    // Removes it again, as when code objects are unloaded.
    poke(scene.runtime.debug + R_MAP as u64, 0_u64);
    scene.runtime.announce();
}

/// Publishes a list of one entry with this URI.
fn uri(scene: &Scene, uri: &[u8]) {
    publish(scene, node(0, &[uri, b"\0"].concat(), 0));
}

/// Publishes a list of one entry whose code object consists of these bytes.
fn in_memory(scene: &Scene, code: Vec<u8>) {
    let size = code.len();
    let offset = keep_bytes(code);
    debug_assert!(size > PAGE);
    uri(scene, format!("memory://1#offset={offset}&size={size}").as_bytes());
}
