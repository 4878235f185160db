//! SDMA doorbells, with the commands that they publish.

use tracer_common::record::{self, SDMA_COMMANDS_LEN};
use tracer_core::event::{Event, SdmaDoorbell};

use super::{api, fetch::Fetch, origin};

/// Longest submission that is read: a copy of 2 GiB by engines that take 4 MiB per command.
const MAX_COMMANDS: usize = 16 << 10;

/// Reports one doorbell.
pub fn doorbell(r: &record::SdmaDoorbell, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
    let size = r.end.wrapping_sub(r.begin);
    let len = (r.len as usize).min(SDMA_COMMANDS_LEN);
    let mut long = [0; MAX_COMMANDS];
    let commands = if len == 0 {
        None
    } else if len as u64 == size {
        r.commands.get(..len)
    } else {
        usize::try_from(size)
            .ok()
            .and_then(|size| long.get_mut(..size))
            .and_then(|long| read(r, memory, long).then_some(&*long))
    };
    sink(&Event::SdmaDoorbell(SdmaDoorbell {
        origin: origin(&r.header),
        write_pointer: r.write_pointer,
        begin: r.begin,
        end: r.end,
        commands,
        call: api::in_call(r.call),
    }));
}

/// Reads a submission that is longer than the program copies; returns whether it is still the submission of this doorbell.
///
/// The contents of the ring stay until the writers have gone around it. Writers are ahead of the write pointer by no more than one
/// submission each, so the half of the ring behind it is unchanged.
fn read(r: &record::SdmaDoorbell, memory: &mut impl Fetch, to: &mut [u8]) -> bool {
    let at = r.begin & r.ring_bytes.wrapping_sub(1);
    let mut now = [0; 8];
    let wanted = &mut [
        (r.ring_base.wrapping_add(at), &mut *to),
        (r.write_pointer, &mut now[..]),
    ];
    let copied = memory.fetch(r.header.tgid, wanted);
    let known = r
        .commands
        .get(..(r.len as usize).min(SDMA_COMMANDS_LEN))
        .unwrap_or_default();
    let untouched = u64::from_ne_bytes(now).saturating_sub(r.begin) <= r.ring_bytes / 2;
    copied && untouched && to.starts_with(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::fetch::tests::Direct;

    /// A ring in this process, whose write pointer is at `now`; a submission of `size` bytes begins at 64.
    fn commands(size: u64, len: u32, now: u64) -> Option<Vec<u8>> {
        let mut ring: Vec<u8> = (0..4096_u32).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        ring.shrink_to_fit();
        let mut record = record::SdmaDoorbell {
            header: record::Header {
                tgid: std::process::id(),
                ..Default::default()
            },
            write_pointer: std::ptr::from_ref(std::hint::black_box(&now)) as u64,
            begin: 64,
            end: 64 + size,
            ring_base: ring.as_ptr() as u64,
            ring_bytes: 4096,
            len,
            pad: 0,
            call: record::Call::NONE,
            commands: [0; SDMA_COMMANDS_LEN],
        };
        let copied = len as usize;
        record.commands[..copied].copy_from_slice(&ring[64..64 + copied]);
        let mut found = None;
        doorbell(std::hint::black_box(&record), &mut Direct, &mut |event: &Event<'_>| {
            if let Event::SdmaDoorbell(doorbell) = event {
                found = doorbell.commands.map(<[u8]>::to_vec);
            }
        });
        if let Some(found) = &found {
            assert_eq!(*found, ring[64..64 + found.len()]);
        }
        found
    }

    #[test]
    fn short_ones_are_in_the_record_and_long_ones_in_the_ring() {
        assert_eq!(commands(160, 160, 0).map(|c| c.len()), Some(160));
        assert_eq!(commands(1600, 512, 64).map(|c| c.len()), Some(1600));
        assert_eq!(commands(1600, 512, 2000).map(|c| c.len()), Some(1600));
        assert_eq!(commands(160, 0, 0), None, "not read");
        assert_eq!(commands(1600, 512, 3000), None, "perhaps written again");
        assert_eq!(commands(1 << 40, 512, 64), None, "longer than any");
    }
}
