use super::*;
use crate::event::Origin;

impl Memory {
    fn call(&mut self, nr: u32, arg: &[u8]) {
        self.command(0xc000_4b00 | (arg.len() as u32) << 16 | nr, arg);
    }

    fn command(&mut self, cmd: u32, arg: &[u8]) {
        self.ioctl(&Ioctl {
            origin: Origin {
                time_ns: 1,
                pid: 7,
                tid: 7,
            },
            exit_ns: 2,
            fd: 3,
            cmd,
            ret: Some(0),
            arg_in: Some(arg),
            arg_out: Some(arg),
        });
    }

    fn take(&mut self, start: u64, size: u64, flags: u32, handle: u64) {
        let mut arg = [0; 40];
        arg[0..8].copy_from_slice(&start.to_le_bytes());
        arg[8..16].copy_from_slice(&size.to_le_bytes());
        arg[16..24].copy_from_slice(&handle.to_le_bytes());
        arg[36..40].copy_from_slice(&flags.to_le_bytes());
        self.call(0x16, &arg);
    }
}

#[test]
fn a_direction_needs_both_ends() {
    let mut memory = Memory::default();
    memory.take(0x1000, 0x1000, 0xd000_0002, 1);
    memory.take(0x8000, 0x1000, 0x8000_0001, 2);
    let (host, gpu) = ((0x1000, 0x1000), (0x8800, 0x800));
    assert_eq!(memory.direction(7, host, gpu), Some(Direction::H2d));
    assert_eq!(memory.direction(7, gpu, host), Some(Direction::D2h));
    assert_eq!(memory.direction(7, gpu, gpu), Some(Direction::D2d));
    assert_eq!(memory.direction(7, host, host), Some(Direction::H2h));
    assert_eq!(memory.direction(8, host, gpu), None, "another process");
    assert_eq!(memory.direction(7, (0x1000, 0x1001), gpu), None, "beyond the end");
    assert_eq!(memory.direction(7, (0, 1), gpu), None);
    memory.call(0x17, &1_u64.to_le_bytes());
    assert_eq!(memory.direction(7, host, gpu), None, "freed");
    // A doorbell page is not memory.
    memory.take(0x2000, 0x1000, 0x9400_0008, 3);
    assert_eq!(memory.direction(7, (0x2000, 1), gpu), None);
}

#[test]
fn what_was_freed_unseen_makes_room() {
    let mut memory = Memory::default();
    for at in 0..4 {
        memory.take(0x1000 * at, 0x1000, 2, at);
    }
    memory.take(0x1800, 0x1000, 1, 9);
    assert_eq!(memory.direction(7, (0x1900, 1), (0x2700, 1)), Some(Direction::D2d));
    assert_eq!(memory.direction(7, (0x1000, 1), (0x1000, 1)), None);
    assert_eq!(memory.direction(7, (0, 1), (0x3000, 1)), Some(Direction::H2h));
    assert_eq!(memory.by_handle.len(), memory.allocations.len());
    memory.end_process(7);
    assert_eq!((memory.by_handle.len(), memory.allocations.len()), (0, 0));
}

/// A GPU's allocation, one of the host, and 4 KiB of the C library's memory.
const GPU: (u64, u64) = (0x8000, 0x1000);
const PINNED: (u64, u64) = (0x1000, 0x1000);
const MALLOC: (u64, u64) = (0x5000, 0x1000);

/// A process that has these allocations, and has learned that page faults of its GPUs are not retried.
fn whole() -> Memory {
    let mut memory = Memory::default();
    memory.take(PINNED.0, PINNED.1, 2, 1);
    memory.take(GPU.0, GPU.1, 1, 2);
    memory.call(0x21, &0_i32.to_le_bytes());
    memory
}

/// SVM with one attribute.
fn svm(start: u64, op: u32, kind: u32, value: u32) -> Vec<u8> {
    let mut arg = [start, 0x1000].map(u64::to_le_bytes).concat();
    arg.extend([op, 1, kind, value].map(u32::to_le_bytes).concat());
    arg
}

/// What a process does before a copy.
type Change = fn(&mut Memory);

#[test]
fn what_no_gpu_can_have_is_the_hosts() {
    let memory = whole();
    assert_eq!(memory.direction(7, MALLOC, GPU), Some(Direction::H2d));
    assert_eq!(memory.direction(7, GPU, MALLOC), Some(Direction::D2h));
    assert_eq!(memory.direction(7, MALLOC, PINNED), Some(Direction::H2h));
    assert_eq!(memory.direction(7, (0x7fff, 2), GPU), None, "partly the GPU's");
    assert_eq!(memory.direction(7, (0x7000, 0x3000), GPU), None, "around the GPU's");
    assert_eq!(
        memory.direction(7, (0x7000, 0x1000), GPU),
        Some(Direction::H2d),
        "before"
    );
    assert_eq!(memory.direction(7, (0x9000, 1), GPU), Some(Direction::H2d), "after");
    assert_eq!(memory.direction(8, MALLOC, GPU), None, "another process");
}

/// Each of these can put memory that was not allocated on a GPU, or hide an allocation.
#[test]
fn what_a_gpu_can_have_stays_unknown() {
    let cases: [(&str, Change); 10] = [
        ("attached later", |memory| memory.attached(7)),
        ("ioctls were lost", |memory| memory.lost("ioctl-ring")),
        ("ioctls did not find their entry", |memory| memory.lost("ioctl-map")),
        ("retries page faults", |memory| memory.call(0x21, &1_i32.to_le_bytes())),
        ("imported a buffer", |memory| memory.call(0x1d, &[0; 24])),
        ("restored a process", |memory| memory.call(0x22, &[0; 56])),
        ("a call of AMD's own driver", |memory| memory.call(0x84, &[0; 24])),
        ("mapped a buffer of DRM", |memory| memory.command(0x4028_6448, &[0; 40])),
        ("prefetched to a GPU", |memory| {
            memory.call(0x20, &svm(MALLOC.0, 0, 1, 77));
        }),
        ("prefers a GPU", |memory| {
            memory.call(0x20, &svm(MALLOC.0 - 0x800, 0, 0, 77));
        }),
    ];
    for (why, change) in cases {
        let mut memory = whole();
        change(&mut memory);
        assert_eq!(memory.direction(7, MALLOC, GPU), None, "{why}");
        assert_eq!(memory.direction(7, PINNED, GPU), Some(Direction::H2d), "{why}");
    }
    let mut memory = Memory::default();
    memory.take(GPU.0, GPU.1, 1, 2);
    assert_eq!(
        memory.direction(7, MALLOC, GPU),
        None,
        "never asked whether faults are retried"
    );
    // An allocation that cannot be read may be anywhere.
    let mut memory = whole();
    memory.call(0x16, &[0; 8]);
    assert_eq!(memory.direction(7, MALLOC, GPU), None);
}

#[test]
fn what_keeps_memory_where_it_is_changes_nothing() {
    let cases: [(&str, Change); 6] = [
        ("registered", |memory| memory.call(0x20, &svm(MALLOC.0, 0, 2, 77))),
        ("prefetched to the host", |memory| {
            memory.call(0x20, &svm(MALLOC.0, 0, 1, 0));
        }),
        ("prefers nothing", |memory| {
            memory.call(0x20, &svm(MALLOC.0, 0, 0, u32::MAX));
        }),
        ("asked for attributes", |memory| {
            memory.call(0x20, &svm(MALLOC.0, 1, 0, 77));
        }),
        ("prefetched other memory", |memory| {
            memory.call(0x20, &svm(0x4000, 0, 1, 77));
        }),
        ("other events were lost", |memory| memory.lost("ring-job-ring")),
    ];
    for (why, change) in cases {
        let mut memory = whole();
        change(&mut memory);
        assert_eq!(memory.direction(7, MALLOC, GPU), Some(Direction::H2d), "{why}");
    }
    // A new program has a new address space, in which everything is watched from the start.
    let mut memory = whole();
    memory.attached(7);
    memory.end_process(7);
    memory.take(GPU.0, GPU.1, 1, 2);
    memory.call(0x21, &0_i32.to_le_bytes());
    assert_eq!(memory.direction(7, MALLOC, GPU), Some(Direction::H2d));
}
