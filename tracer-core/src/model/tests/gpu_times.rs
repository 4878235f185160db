use tracer_common::record::Stamps;

use super::*;

const SIGNAL: u64 = 0x9000;

impl Trace {
    /// Applies a dispatch whose completion signal did not contain its times yet, and its doorbell.
    fn ring_signalled(&mut self, bell: Doorbell) {
        let mut packet = dispatch(bell.first);
        packet.bytes[0x38..0x40].copy_from_slice(&SIGNAL.to_le_bytes());
        self.apply(&Event::Packets(Packets {
            origin: bell.origin,
            handle: bell.handle,
            first: bell.first,
            ring_packets: bell.ring_packets,
            read_index: bell.read_index,
            write_index: bell.write_index,
            value: bell.value,
            call: None,
            packets: &[packet],
            ready: 1,
            stamps: &[Stamps {
                start: bell.first * 10 + 1,
                end: bell.first * 10 + 2,
            }],
            before: None,
            proxy: false,
        }));
        self.apply(&Event::Doorbell(bell));
    }

    /// Returns index and ticks.
    fn gpu_times(&mut self) -> Vec<(u64, u64, u64)> {
        self.apply(&Event::Exit(by(1 << 40, PID)));
        let each = self.facts.iter();
        each.filter_map(|fact| match fact {
            Fact::GpuTime(time) => Some((time.index, time.start_ticks, time.end_ticks)),
            _ => None,
        })
        .collect()
    }
}

/// Index 1 was taken without being read. Its completion signal is unknown, so index 0 has no time. The later indexes have times,
/// although the model still waits for the gap.
#[test]
fn what_was_taken_unread_may_have_used_any_signal_until_then() {
    let mut trace = Trace::created();
    trace.ring_signalled(doorbell(100, 0, 0..1, 0, 1));
    trace.ring_signalled(doorbell(110, 2, 2..3, 2, 3));
    trace.ring_signalled(doorbell(120, 3, 3..4, 3, 4));
    trace.ring_signalled(doorbell(130, 4, 4..5, 4, 5));
    assert_eq!(trace.gpu_times(), [(2, 31, 32), (3, 41, 42)]);
}

/// The index in between was read by a late walk. The GPU had not taken it yet.
#[test]
fn what_was_not_taken_yet_has_used_none() {
    let mut trace = Trace::created();
    trace.ring_signalled(doorbell(100, 0, 0..1, 0, 1));
    trace.ring_signalled(doorbell(110, 2, 2..3, 1, 3));
    assert_eq!(trace.gpu_times(), [(0, 21, 22)]);
}
