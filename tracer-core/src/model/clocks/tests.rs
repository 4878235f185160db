use super::*;
use crate::event::Origin;

const GPU: u32 = 7;

/// Clocks and the facts that they reported.
#[derive(Default)]
struct Dated {
    clocks: Clocks,
    times: Vec<GpuTime>,
}

impl Dated {
    fn read(&mut self, ticks: u64, enter_ns: u64, exit_ns: u64) {
        self.read_by(ticks, enter_ns, exit_ns, Some(0));
    }

    fn read_by(&mut self, ticks: u64, enter_ns: u64, exit_ns: u64, ret: Option<i64>) {
        let mut arg = [0_u8; 40];
        arg[..8].copy_from_slice(&ticks.to_le_bytes());
        arg[32..36].copy_from_slice(&GPU.to_le_bytes());
        let origin = Origin {
            time_ns: enter_ns,
            pid: 1,
            tid: 1,
        };
        let event = Ioctl {
            origin,
            exit_ns,
            fd: 3,
            cmd: 0xc028_4b05,
            ret,
            arg_in: None,
            arg_out: Some(&arg),
        };
        self.clocks.ioctl(&event, &mut take(&mut self.times));
    }

    fn ran(&mut self, ticks: (u64, u64), published_ns: u64, seen_ns: u64) {
        self.ran_on(Some(GPU), ticks, published_ns, seen_ns);
    }

    fn ran_on(&mut self, gpu_id: Option<u32>, (start_ticks, end_ticks): (u64, u64), time_ns: u64, seen_ns: u64) {
        let time = GpuTime {
            queue: 0,
            index: 0,
            pid: 1,
            time_ns,
            kernel_object: 64,
            kernel: None,
            gpu_id,
            start_ticks,
            end_ticks,
            start_ns: None,
            end_ns: None,
            clock_error_ns: None,
        };
        self.clocks.date(Stamped { time, seen_ns }, &mut take(&mut self.times));
    }

    fn finish(&mut self) {
        self.clocks.finish(&mut take(&mut self.times));
    }

    fn ns(&self) -> Vec<Option<(u64, u64, u64)>> {
        let one = |time: &GpuTime| Some((time.start_ns?, time.end_ns?, time.clock_error_ns?));
        self.times.iter().map(one).collect()
    }
}

fn take(times: &mut Vec<GpuTime>) -> impl FnMut(Fact) {
    |fact| match fact {
        Fact::GpuTime(time) => times.push(time),
        other => panic!("{other:?}"),
    }
}

#[test]
fn times_between_two_readings_are_dated_at_the_second() {
    let mut dated = Dated::default();
    // 100 MHz: a tick is 10 ns.
    dated.read(1_000_000, 500_000_000, 500_002_000);
    dated.ran((1_000_500, 1_001_500), 500_004_000, 500_030_000);
    assert_eq!(dated.times, []);
    dated.read(2_000_000, 510_000_000, 510_002_000);
    // 501 000 us is tick 1 000 000.
    assert_eq!(dated.ns(), [Some((500_006_000, 500_016_000, 1_012))]);
    dated.ran((1_500_000, 1_500_001), 500_004_000, 509_000_000);
    assert_eq!(dated.ns().len(), 2);
    dated.ran((2_500_000, 2_600_000), 511_000_000, 520_000_000);
    assert_eq!(dated.ns().len(), 2, "no reading after it");
    dated.finish();
    // The distance is half of that between the readings, so half of the errors of both readings is added.
    assert_eq!(dated.ns()[2], Some((515_001_000, 516_001_000, 1_011 + 1_200 + 600)));
}

#[test]
fn without_two_readings_there_are_only_ticks() {
    let mut dated = Dated::default();
    dated.ran((10, 20), 100, 200);
    dated.read(5, 100, 102);
    dated.ran_on(None, (30, 40), 100, 200);
    assert_eq!(dated.ns(), [None]);
    dated.finish();
    assert_eq!(dated.ns(), [None, None]);
    let ticks: Vec<_> = dated
        .times
        .iter()
        .map(|time| (time.start_ticks, time.end_ticks))
        .collect();
    assert_eq!(ticks, [(30, 40), (10, 20)]);
}

#[test]
fn far_from_close_readings_no_time_is_dated() {
    let mut dated = Dated::default();
    dated.read(1_000, 10_000_000, 10_004_000);
    dated.read(2_000, 10_010_000, 10_014_000);
    dated.ran((10_000_000, 10_000_001), 60_000_000, 200_000_000);
    dated.finish();
    assert_eq!(dated.ns(), [None]);
}

#[test]
fn stamps_from_before_the_doorbell_or_from_later_are_not_the_dispatchs() {
    let mut dated = Dated::default();
    dated.read(1_000_000, 500_000_000, 500_002_000);
    dated.read(2_000_000, 510_000_000, 510_002_000);
    // The dispatch began at 501.001 ms. Within the error of the readings, these times are possible.
    for (published, seen) in [(502_000_000, 503_000_000), (500_000_000, 500_990_000)] {
        dated.ran((1_100_000, 1_100_100), published, seen);
        assert_eq!(dated.times, []);
    }
    dated.ran((1_100_000, 1_100_100), 501_002_000, 501_000_500);
    assert_eq!(dated.ns().len(), 1);
}

#[test]
fn readings_that_failed_or_come_late_or_are_of_no_gpu_count_for_nothing() {
    let mut dated = Dated::default();
    dated.read(1_000, 1_000_000, 1_000_100);
    dated.read_by(9_000, 1_100_000, 1_100_100, Some(-22));
    dated.read_by(9_000, 1_100_000, 1_100_100, None);
    dated.read(0, 1_200_000, 1_200_100);
    dated.read(900, 1_300_000, 1_300_100);
    dated.read(2_000, 900_000, 900_100);
    dated.read(2_000, 1_400_000, 1_300_000);
    dated.ran((1_100, 1_200), 0, u64::MAX);
    dated.finish();
    assert_eq!(dated.ns(), [None]);
}

#[test]
fn a_clock_that_was_set_anew_tells_nothing_by_its_old_readings() {
    let mut dated = Dated::default();
    dated.read(1_000_000, 500_000_000, 500_002_000);
    dated.read(2_000_000, 510_000_000, 510_002_000);
    dated.ran((2_500_000, 2_600_000), 511_000_000, 520_000_000);
    // The GPU was reset.
    dated.read(100_000, 2_000_000_000, 2_000_002_000);
    assert_eq!(dated.ns().len(), 1);
    dated.ran((150_000, 160_000), 2_000_100_000, 2_000_700_000);
    dated.read(1_100_000, 2_010_000_000, 2_010_002_000);
    assert_eq!(
        dated.ns()[1].map(|(start, end, _)| (start, end)),
        Some((2_000_501_000, 2_000_601_000))
    );
}

/// Between readings that are far from each other, a change of the rate in between would show in a converted time.
#[test]
fn far_from_both_readings_a_date_may_be_off_by_what_the_rates_change() {
    let mut dated = Dated::default();
    dated.read(1_000, 0, 2);
    dated.read(4_000_001_000, 40_000_000_000, 40_000_000_002);
    dated.ran((2_000_001_000, 2_000_001_010), 4_000_000_000, 30_000_000_000);
    dated.ran((101_000, 101_010), 1_000, 6_000_000_000);
    // 20 s from the nearer reading, and 1 ms.
    assert_eq!(dated.ns(), [None, Some((1_000_001, 1_000_101, 1 + 11 + 100))]);
}

#[test]
fn the_readings_of_a_process_are_its_own_and_end_with_it() {
    let mut dated = Dated::default();
    dated.read(1_000_000, 500_000_000, 500_002_000);
    dated.ran((1_500_000, 1_500_100), 500_000_000, 509_000_000);
    dated.clocks.end_process(2, &mut take(&mut dated.times));
    assert_eq!(dated.times, []);
    dated.clocks.end_process(1, &mut take(&mut dated.times));
    assert_eq!((dated.ns(), dated.clocks.waiting), (vec![None], 0));
    assert!(dated.clocks.by_process.is_empty());
}

#[test]
fn what_is_kept_is_limited() {
    let mut clock = Clock::default();
    for k in 1..5_000 {
        let ns = k * NEAR_NS;
        let reading = Reading {
            ticks: k * 1_000,
            enter_ns: ns,
            exit_ns: ns + 2,
        };
        clock.read(reading, &mut |_| ());
        assert!(clock.readings.len() <= MAX_READINGS);
        assert!(clock.readings.is_sorted_by(|a, b| a.ticks < b.ticks));
    }
    assert_eq!(clock.readings[0].ticks, 1_000);
    let mut dated = Dated::default();
    for k in 0..MAX_WAITING as u64 {
        dated.ran((k + 1, k + 2), 0, 0);
    }
    assert_eq!((dated.times.len(), dated.clocks.waiting), (0, MAX_WAITING));
    dated.ran((1, 2), 0, 0);
    assert_eq!((dated.times.len(), dated.clocks.waiting), (MAX_WAITING, 1));
    for gpu in 0..2 * MAX_CLOCKS as u32 {
        dated.ran_on(Some(gpu), (1, 2), 0, 0);
    }
    assert_eq!(dated.clocks.by_process.len(), MAX_CLOCKS);
}
