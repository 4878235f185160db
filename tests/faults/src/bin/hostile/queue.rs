//! Traps in queues, doorbells and packets, and in the names and mappings of a process.

use std::{
    fs::{self, File},
    os::fd::AsRawFd,
    ptr,
};

use tracer_common::{
    aql::PACKET_LEN,
    queue::{BASE_ADDRESS, HEAD_LEN, READ_DISPATCH_ID, SIGNAL_QUEUE_PTR, SIZE, WRITE_DISPATCH_ID},
};

use crate::{
    Mode, Scene,
    memory::{IMPOSSIBLE, KERNEL, NOWHERE, PAGE, at_the_end, peek, poke},
    runtime::dispatch,
};

/// All modes, with their names.
pub const MODES: [Mode; 16] = [
    ("ring-nowhere", |scene| set(scene, BASE_ADDRESS, NOWHERE)),
    ("ring-in-the-kernel", |scene| set(scene, BASE_ADDRESS, KERNEL)),
    ("ring-impossible", |scene| set(scene, BASE_ADDRESS, IMPOSSIBLE)),
    ("ring-of-no-packets", |scene| set(scene, SIZE, 0_u32)),
    ("ring-of-three-packets", |scene| set(scene, SIZE, 3_u32)),
    ("ring-of-all-packets", |scene| set(scene, SIZE, u32::MAX)),
    ("write-index-goes-back", |scene| set(scene, WRITE_DISPATCH_ID, 0_u64)),
    ("write-index-at-the-end", |scene| {
        set(scene, WRITE_DISPATCH_ID, u64::MAX - 1);
    }),
    ("read-index-ahead", |scene| set(scene, READ_DISPATCH_ID, 1_u64 << 60)),
    ("queue-nowhere", |scene| point(scene, NOWHERE)),
    ("queue-at-the-end-of-memory", |scene| {
        point(scene, at_the_end(&[0xff; HEAD_LEN - 8]));
    }),
    ("doorbell-goes-back", |scene| {
        scene.runtime.submit(5);
        scene.runtime.ring(0);
        scene.runtime.submit(2);
    }),
    ("signal-nowhere", |scene| {
        scene.runtime.submit(2);
        let index = scene.runtime.write(dispatch(NOWHERE));
        scene.runtime.ring(index);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }),
    ("packets-of-garbage", |scene| {
        scene.runtime.submit(2);
        let index = scene.runtime.write([0x5a; PACKET_LEN]);
        scene.runtime.ring(index);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }),
    ("name-of-the-process-with-escapes", |scene| {
        // SAFETY: the name is a C string.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"\x1b]0;x\x07\n::err".as_ptr()) };
        scene.runtime.submit(4);
    }),
    ("maps-garbage", |scene| {
        scene.runtime.submit(2);
        for (number, header) in [&b"\x7fELF\x02\x01\x01"[..], b"\x7fELF\xff\xff", b"\x1b]0;owned\x07"]
            .iter()
            .enumerate()
        {
            let path = scene.folder.join(format!("libhsa-runtime64.so.1\u{1b}[2J{number}"));
            let mut bytes = header.to_vec();
            bytes.resize(4 * PAGE, 0xff);
            if fs::write(&path, bytes).is_ok() {
                map(&path);
            }
        }
        scene.runtime.submit(2);
    }),
];

/// Changes a field of the queue between packets, and restores it.
fn set<T: Copy>(scene: &Scene, field: usize, value: T) {
    let place = scene.runtime.queue + field as u64;
    scene.runtime.submit(5);
    let before: T = peek(place);
    scene.runtime.be_forgotten();
    let index = scene.runtime.write(dispatch(0));
    poke(place, value);
    scene.runtime.ring(index);
    // Waits until the GPU has taken the packet: while it is in the ring, the next doorbell finds it there.
    if field != READ_DISPATCH_ID {
        scene.runtime.taken(index);
    }
    poke(place, before);
    scene.runtime.submit(2);
}

/// Makes the doorbell's signal name another queue address.
fn point(scene: &Scene, queue: u64) {
    let place = scene.runtime.doorbell + SIGNAL_QUEUE_PTR as u64;
    scene.runtime.submit(2);
    let before: u64 = peek(place);
    scene.runtime.be_forgotten();
    let index = scene.runtime.write(dispatch(0));
    poke(place, queue);
    scene.runtime.ring(index);
    poke(place, before);
    scene.runtime.submit(2);
}

fn map(path: &std::path::Path) {
    let Ok(file) = File::open(path) else { return };
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: a new mapping at an unused address that the kernel chooses.
    unsafe {
        libc::mmap(
            ptr::null_mut(),
            4 * PAGE,
            protection,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
}
