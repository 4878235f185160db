use std::sync::atomic::AtomicU64;

use super::*;

fn readers() -> Readers {
    // SAFETY: the other thread of a test program only waits, and the C library's own locks survive a fork.
    unsafe { Readers::start() }.unwrap()
}

fn own(indexes: &[AtomicU64; 2]) -> Position {
    let at = std::ptr::from_ref(indexes).expose_provenance() as u64;
    Position {
        pid: std::process::id(),
        handle: at,
        read_pointer: at,
        write_pointer: at + 8,
        ring: None,
    }
}

fn of_queues(samples: impl Iterator<Item = Sample>) -> impl Iterator<Item = Progress> {
    samples.filter_map(|sample| match sample {
        Sample::Queue(progress) => Some(progress),
        Sample::Signal(_) | Sample::Taken(_) => None,
    })
}

/// Samples until a sample shows what the test waits for.
fn wait_for(sampler: &Sampler, handle: u64, indexes: (u64, u64)) -> Progress {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = |sample: &Progress| sample.handle == handle && (sample.read_index, sample.write_index) == indexes;
        if let Some(sample) = of_queues(sampler.samples()).find(found) {
            return sample;
        }
        assert!(Instant::now() < deadline, "it was never seen at {indexes:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn changes_are_sampled_and_the_last_sample_comes_at_the_end() {
    let queues: Vec<[AtomicU64; 2]> = (0..1000).map(|_| Default::default()).collect();
    let sampler = Sampler::start(readers(), Waker::new().unwrap()).unwrap();
    sampler.watch(queues.iter().map(own).collect());
    let moving = own(&queues[500]);
    wait_for(&sampler, moving.handle, (0, 0));
    queues[500][1].store(7, Ordering::SeqCst);
    queues[500][0].store(3, Ordering::SeqCst);
    let sample = wait_for(&sampler, moving.handle, (3, 7));
    assert!(sample.origin.time_ns <= sample.after_ns && sample.origin.pid == std::process::id());
    assert_eq!((sample.occasion, sample.rung_end), (Occasion::Sample, None));
    queues[500][0].store(7, Ordering::SeqCst);
    let last: Vec<Progress> = of_queues(sampler.finish().into_iter()).collect();
    let of_it = |sample: &&Progress| sample.handle == moving.handle && sample.occasion == Occasion::TraceEnd;
    let ends: Vec<u64> = last.iter().filter(of_it).map(|sample| sample.read_index).collect();
    assert_eq!(ends, [7]);
    assert_eq!(
        last.iter()
            .filter(|sample| sample.occasion == Occasion::TraceEnd)
            .count(),
        1000
    );
}

#[test]
fn queues_of_processes_that_ended_are_passed_over() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let gone = Position {
        pid: child.id(),
        handle: 8,
        read_pointer: 8,
        write_pointer: 16,
        ring: None,
    };
    child.wait().unwrap();
    let indexes = [AtomicU64::new(1), AtomicU64::new(2)];
    let sampler = Sampler::start(readers(), Waker::new().unwrap()).unwrap();
    sampler.watch(vec![gone, own(&indexes)]);
    wait_for(&sampler, own(&indexes).handle, (1, 2));
    assert!(of_queues(sampler.finish().into_iter()).all(|sample| sample.handle != gone.handle));
}
