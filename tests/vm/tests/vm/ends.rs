//! The last sample of a process's queues, which the exiting thread takes: at its exit since Linux 6.16, before that at `exit_group` and
//! at signals. On kernels from 6.16 up to those that preempt raw programs, the program at the exit is a raw one:
//! `tests/e2e/tests/progress.rs` tests it where the tests run on such a kernel.

use tracer_core::tables::Fact;
use tracer_e2e::scenario::Scenario;

use crate::machine::Machine;

/// Packets of the program, and how many of them a doorbell of its runtime announces.
const PACKETS: &str = "9";
const SEEN: &str = "4";
const UNSEEN: u64 = 5;

pub fn the_exiting_thread_takes_the_last_sample(machine: &mut Machine) {
    let ends: &[(&str, i32)] = match machine.kernel.as_str() {
        "6.1" => &[("exit", 0), ("kill", 128 + 9)],
        // Both are one event there.
        "7.x" => &[("kill", 128 + 9)],
        kernel => {
            println!("not checked on {kernel}, which runs the same programs as 6.1");
            return;
        }
    };
    for &(leave, code) in ends {
        let workload = ["direct-doorbell", "-n", PACKETS, "--seen", SEEN, "--leave", leave];
        let run = machine.scenario("", "", &Scenario::new("trixie", "gfx1100", &workload), code);
        let queue = run.queues().find(|queue| queue.unseen == Some(UNSEEN)).unwrap();
        assert_eq!((queue.watched_to_end, queue.read_index), (Some(true), Some(9)));
        let mut samples = run.facts.iter().filter_map(|fact| match fact {
            Fact::Progress(sample) if sample.queue == queue.queue => Some(sample),
            _ => None,
        });
        let last = samples.next_back().unwrap();
        println!("{} {leave}: {last:?}", machine.kernel);
        assert_eq!((last.read_index, last.write_index), (9, 9));
    }
}
