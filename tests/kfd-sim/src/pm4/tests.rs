//! Tests of whole PM4 queues: the test is its own client, and rings the doorbell in the device's memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::asic::Asic;
use crate::ioctl::abi::CreateQueue;
use crate::ioctl::queues;
use crate::kernels::Kernels;
use crate::machine::Machine;
use crate::process::Process;
use crate::topology::gpu_id;
use crate::truth::Truth;

/// A queue of 1024 words, and a page for its pointers.
struct Client {
    machine: Arc<Machine>,
    process: Arc<Process>,
    ring: Vec<AtomicU32>,
    pointers: Vec<AtomicU64>,
    args: CreateQueue,
    put: u64,
}

impl Client {
    fn new() -> Self {
        let asic = Asic::by_name("gfx1100").unwrap();
        let truth = Arc::new(Truth::start(None).unwrap());
        let sysfs = PathBuf::from("/nowhere/at/all");
        let machine = Machine::new(
            (asic, 1),
            Kernels::default(),
            Duration::ZERO,
            Vec::new(),
            truth,
            sysfs,
            false,
        );
        let machine = Arc::new(machine.unwrap());
        let process = machine.process(std::process::id() as i32).unwrap();
        let ring: Vec<AtomicU32> = (0..1024).map(|_| AtomicU32::new(0)).collect();
        let pointers: Vec<AtomicU64> = (0..2).map(|_| AtomicU64::new(0)).collect();
        let mut args = CreateQueue {
            ring_base_address: ring.as_ptr() as u64,
            ring_size: 4096,
            write_pointer_address: (&raw const pointers[0]) as u64,
            read_pointer_address: (&raw const pointers[1]) as u64,
            gpu_id: gpu_id(0),
            queue_type: 0,
            queue_percentage: 100,
            queue_priority: 7,
            ..CreateQueue::default()
        };
        queues::create(&machine, &process, &mut args).unwrap();
        Self {
            machine,
            process,
            ring,
            pointers,
            args,
            put: 0,
        }
    }

    fn submit(&mut self, words: &[u32]) {
        for word in words {
            self.ring[self.put as usize % 1024].store(*word, Ordering::Relaxed);
            self.put += 1;
        }
        let doorbells = self.machine.doorbells.file();
        let at = doorbells.at(self.args.doorbell_offset, 8).unwrap();
        // SAFETY: 8 mapped and aligned bytes of a file that `machine` holds; the queue only loads from them.
        unsafe { AtomicU64::from_ptr(at.cast()) }.store(self.put, Ordering::Release);
    }

    fn counted(&self) -> [u64; 3] {
        let counts = &self.machine.truth.counts;
        [&counts.pm4, &counts.pm4_dispatches, &counts.queue_errors].map(|count| count.load(Ordering::Relaxed))
    }

    /// Waits until the read pointer is there.
    fn await_read(&self, position: u64) {
        self.await_that(|| self.pointers[1].load(Ordering::Acquire) == position);
    }

    fn await_that(&self, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(Instant::now() < deadline, "the queue is at {:?}", self.pointers[1]);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.process.tear_down(&self.machine);
    }
}

fn packet(op: u32, body: &[u32]) -> Vec<u32> {
    let mut words = vec![3 << 30 | (body.len() as u32 - 1) << 16 | op << 8];
    words.extend(body);
    words
}

fn halves(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

fn release(to: &AtomicU64, value: u32) -> Vec<u32> {
    let [low, high] = halves((&raw const *to) as u64);
    packet(0x49, &[0x514, 1 << 29, low, high, value, 0, 0])
}

#[test]
fn a_buffer_is_run_where_the_ring_refers_to_it() {
    let mut client = Client::new();
    let (gate, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let [low, high] = halves((&raw const gate) as u64);
    let mut buffer = packet(0x15, &[4, 1, 1, 1]);
    buffer.extend(packet(0x3c, &[5 | 1 << 4, low, high, 7, u32::MAX, 4]));
    buffer.extend(release(&done, 3));
    let [low, high] = halves(buffer.as_ptr() as u64);
    client.submit(&packet(0x3f, &[low, high, 0x80_0000 | buffer.len() as u32]));
    // The wait is in the buffer, and the dispatch before it is counted once, however often the wait looks.
    client.await_that(|| client.counted()[0] == 3);
    assert_eq!((client.counted(), done.load(Ordering::Acquire)), ([3, 1, 0], 0));
    gate.store(7, Ordering::Release);
    client.await_read(4);
    assert_eq!((client.counted(), done.load(Ordering::Acquire)), ([4, 1, 0], 3));
}

#[test]
fn a_queue_that_is_updated_within_a_buffer_continues_there() {
    let mut client = Client::new();
    let (gate, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let [low, high] = halves((&raw const gate) as u64);
    let mut buffer = packet(0x15, &[4, 1, 1, 1]);
    buffer.extend(packet(0x3c, &[3 | 1 << 4, low, high, 1, u32::MAX, 4]));
    buffer.extend(release(&done, 3));
    let [low, high] = halves(buffer.as_ptr() as u64);
    client.submit(&packet(0x3f, &[low, high, buffer.len() as u32]));
    client.await_that(|| client.counted()[0] == 3);
    let update = |percentage| {
        let mut state = client.process.state();
        let queue = state.queues.get_mut(&client.args.queue_id).unwrap();
        queue.update(client.args.ring_base_address, client.args.ring_size, percentage);
    };
    update(0);
    gate.store(1, Ordering::Release);
    update(100);
    client.await_read(4);
    assert_eq!((client.counted(), done.load(Ordering::Acquire)), ([4, 1, 0], 3));
}

#[test]
fn packets_wrap_around_the_end_of_the_ring() {
    let mut client = Client::new();
    let done = AtomicU64::new(0);
    // A NOP of all but four words.
    let mut filler = packet(0x10, &[0; 1019]);
    filler.truncate(1020);
    client.submit(&filler);
    client.await_read(1020);
    client.submit(&release(&done, 9));
    client.await_read(4);
    assert_eq!((client.counted(), done.load(Ordering::Acquire)), ([2, 0, 0], 9));
}

#[test]
fn only_the_first_die_executes_what_is_for_one_die() {
    let mut client = Client::new();
    let (first, second) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut words = packet(0x23, &[1 << 24 | 8]);
    words.extend(release(&first, 1));
    words.extend(packet(0x23, &[2 << 24 | 8]));
    words.extend(release(&second, 1));
    client.submit(&words);
    client.await_read(words.len() as u64);
    assert_eq!((first.load(Ordering::Acquire), second.load(Ordering::Acquire)), (1, 0));
    assert_eq!(client.counted(), [3, 0, 0]);
}

#[test]
fn garbage_stops_the_queue() {
    let mut client = Client::new();
    client.submit(&[0x1234_5678]);
    client.await_that(|| client.counted()[2] == 1);
    let mut client = Client::new();
    client.submit(&[3 << 30 | 9 << 16 | 0x49 << 8, 0]);
    client.await_that(|| client.counted()[2] == 1);
}
