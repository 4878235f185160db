//! Records of perf events, byte for byte: include/uapi/linux/perf_event.h.
//!
//! Every sample begins with the number of its event, the process and thread, and the time. Every other record ends with the
//! process and thread, the time, and the number of the event (`sample_id_all`).

use perf_event_open_sys::bindings::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_MISC_COMM_EXEC,
    PERF_RECORD_MMAP2, PERF_RECORD_SAMPLE,
};
use tracer_core::event::Origin;

use super::ring::HEADER;
use crate::samples::{Call, File, Record, Registers, array, half, text, word};

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfRecord<'a> {
    /// A sample of the event of this number, without the fields that all samples have.
    Sample(u64, &'a [u8]),
    /// This many records had no room.
    Lost(u64),
    /// Any other record.
    Other(Record<'a>),
}

/// Bytes at the end of every record that is not a sample.
const TRAILER: usize = 24;

/// Returns a record with its time, process and thread; `None` if it is too short for its kind.
pub fn parse(bytes: &[u8]) -> Option<(Origin, PerfRecord<'_>)> {
    let kind = u32::from_ne_bytes(array(bytes, 0)?);
    let misc = u32::from(u16::from_ne_bytes(array(bytes, 4)?));
    let body = bytes.get(HEADER..)?;
    if kind == PERF_RECORD_SAMPLE {
        let origin = Origin {
            pid: half(body, 8)?,
            tid: half(body, 12)?,
            time_ns: word(body, 16)?,
        };
        return Some((origin, PerfRecord::Sample(word(body, 0)?, body.get(24..)?)));
    }
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER)?)?;
    let mut origin = Origin {
        pid: half(trailer, 0)?,
        tid: half(trailer, 4)?,
        time_ns: word(trailer, 8)?,
    };
    let record = match kind {
        PERF_RECORD_FORK => {
            // pid, ppid, tid, ptid. The trailer has the new thread.
            let (child, tid) = (half(body, 0)?, half(body, 8)?);
            (origin.pid, origin.tid) = (half(body, 4)?, half(body, 12)?);
            Record::Fork(child, tid)
        }
        PERF_RECORD_EXIT => {
            (origin.pid, origin.tid) = (half(body, 0)?, half(body, 8)?);
            Record::Exit
        }
        PERF_RECORD_COMM if misc & PERF_RECORD_MISC_COMM_EXEC != 0 => {
            (origin.pid, origin.tid) = (half(body, 0)?, half(body, 4)?);
            Record::Exec(text(body.get(8..)?))
        }
        PERF_RECORD_MMAP2 => {
            (origin.pid, origin.tid) = (half(body, 0)?, half(body, 4)?);
            Record::Mapped(Some(File {
                device: (half(body, 32)?, half(body, 36)?),
                inode: word(body, 40)?,
                path: text(body.get(64..)?),
            }))
        }
        PERF_RECORD_LOST => return Some((origin, PerfRecord::Lost(word(body, 8)?))),
        _ => Record::Other,
    };
    Some((origin, PerfRecord::Other(record)))
}

/// Returns the registers in the body of a sample at a uprobe; `None` if the kernel gave none.
pub fn registers(body: &[u8]) -> Option<Registers> {
    // The first word says which registers the thread has: none for a thread of the kernel.
    (word(body, 0)? != 0).then_some(())?;
    Some(Registers {
        si: word(body, 8)?,
        di: word(body, 16)?,
        ip: word(body, 32)?,
    })
}

/// Returns the parts of the body of a sample with a record and a stack.
pub fn call(body: &[u8]) -> Option<Call<'_>> {
    let (raw, rest) = raw(body)?;
    let (stack_pointer, rest) = if word(rest, 0)? == 0 {
        (0, rest.get(8..)?)
    } else {
        (word(rest, 8)?, rest.get(16..)?)
    };
    let size = usize::try_from(word(rest, 0)?).ok()?;
    let mut stack: &[u8] = &[];
    if size > 0 {
        stack = rest.get(8..size.checked_add(8)?)?;
        // As much of it as could be copied.
        let copied = usize::try_from(word(rest, size + 8)?).ok()?;
        stack = stack.get(..copied.min(size))?;
    }
    Some(Call {
        raw,
        stack_pointer,
        stack,
    })
}

/// Returns the record in the body of a sample of a trace event, and what comes after it.
pub fn raw(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = (half(body, 0)? as usize).checked_add(4)?;
    Some((body.get(4..end)?, body.get(end..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of words, with its header before them.
    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let length = (HEADER + words.len() * 8) as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes
    }

    fn two(low: u32, high: u32) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }

    #[test]
    fn a_sample_has_its_event_and_its_registers() {
        let bytes = record(PERF_RECORD_SAMPLE, 0, &[7, two(3, 4), 99, 2, 11, 12, 13, 14]);
        let (origin, parsed) = parse(&bytes).unwrap();
        assert_eq!((origin.pid, origin.tid, origin.time_ns), (3, 4, 99));
        let PerfRecord::Sample(7, body) = parsed else {
            panic!("{parsed:?}")
        };
        let expected = Registers { si: 11, di: 12, ip: 14 };
        assert_eq!(registers(body), Some(expected));
        assert_eq!(registers(&[0; 40]), None);
    }

    #[test]
    fn a_system_call_has_its_record_and_its_stack() {
        // 12 bytes of record after their length: two words. ABI, sp, size of the stack, the stack, and what was copied of it.
        let words = [two(12, 1), two(2, 3), 2, 1000, 16, 0xaa, 0xbb, 12];
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let sample = call(&body).unwrap();
        assert_eq!((sample.raw.len(), half(sample.raw, 8)), (12, Some(3)));
        assert_eq!(sample.memory(1000, 8), Some(&0xaa_u64.to_ne_bytes()[..]));
        assert_eq!(sample.memory(1008, 4), Some(&0xbb_u32.to_ne_bytes()[..]));
        assert_eq!((sample.memory(1008, 8), sample.memory(999, 1)), (None, None));
        for cut in 0..body.len() {
            // No length makes it read beyond the record.
            let _ = call(&body[..cut]);
        }
    }

    #[test]
    fn processes_come_and_go() {
        let trailer = [two(5, 6), 77, 1];
        let of = |kind, misc, words: &[u64]| {
            let bytes = record(kind, misc, &[words, &trailer].concat());
            let (origin, record) = parse(&bytes).unwrap();
            (origin.pid, origin.tid, origin.time_ns, format!("{record:?}"))
        };
        let fork = of(PERF_RECORD_FORK, 0, &[two(20, 10), two(21, 11), 50]);
        assert_eq!(fork, (10, 11, 77, "Other(Fork(20, 21))".to_owned()));
        let exit = of(PERF_RECORD_EXIT, 0, &[two(20, 10), two(21, 11), 50]);
        assert_eq!(exit, (20, 21, 77, "Other(Exit)".to_owned()));
        let name = u64::from_ne_bytes(*b"app\0\0\0\0\0");
        let exec = PERF_RECORD_MISC_COMM_EXEC as u16;
        let named = of(PERF_RECORD_COMM, exec, &[two(20, 21), name]);
        assert_eq!(named, (20, 21, 77, "Other(Exec([97, 112, 112]))".to_owned()));
        // A thread that changes its name runs no new program.
        assert_eq!(of(PERF_RECORD_COMM, 0, &[two(20, 21), name]).3, "Other(Other)");
        assert_eq!(of(PERF_RECORD_LOST, 0, &[1, 9]).3, "Lost(9)");
        assert_eq!(parse(&record(PERF_RECORD_FORK, 0, &[1, 2])), None);
    }
}
