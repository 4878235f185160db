//! Pages of the kernel's ring buffer, as `trace_pipe_raw` and trace.dat have them.
//!
//! A page begins with a time and the length of its data. Each record has a header of 32 bits: its kind or length in the lower 5
//! bits, and the time since the record before in the upper 27 (`events/header_page` and `events/header_event` of tracefs;
//! include/linux/ring_buffer.h).

/// Where the data of a page begins, bytes.
pub const DATA: usize = 16;
/// The bits of the second word that are the length. Flags for lost records are above.
const LENGTH: u64 = (1 << 27) - 1;

/// The flag of a page before which records were overwritten.
const MISSED: u64 = 1 << 31;
/// The flag of a page that has their number after its data.
const COUNTED: u64 = 1 << 30;

/// Returns how many records were overwritten before the page: at least one, if the kernel does not say how many.
#[must_use]
pub fn missed(page: &[u8]) -> u64 {
    let Some(length) = word(page, 8).filter(|length| length & MISSED != 0) else {
        return 0;
    };
    let after = DATA + (length & LENGTH) as usize;
    let counted = word(page, after).filter(|_| length & COUNTED != 0);
    counted.unwrap_or(1).max(1)
}

/// The kind of a record with a length of its own, whose first word is the length.
const LONG: u32 = 0;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time in the header of a record.
const DELTA_BITS: u32 = 27;
/// A time stamp has this many bits. The rest is that of the time before.
const STAMP_BITS: u32 = 59;

/// Calls a function with each record of a page: its time, where its data begins in the page, and how long it is. Returns whether all
/// of the page was understood.
pub fn records(page: &[u8], mut found: impl FnMut(u64, usize, usize)) -> bool {
    let (Some(mut time), Some(length)) = (word(page, 0), word(page, 8)) else {
        return false;
    };
    let end = DATA + (length & LENGTH) as usize;
    let Some(page) = page.get(..end) else {
        return false;
    };
    let mut at = DATA;
    while at < end {
        let Some(header) = half(page, at) else {
            return false;
        };
        let (kind, delta) = (header & 0x1f, u64::from(header >> 5));
        let extended = |high: u32| u64::from(high) << DELTA_BITS | delta;
        let (data, size) = match kind {
            LONG => match half(page, at + 4).map(|length| length as usize) {
                // The length includes its own word.
                Some(length) if length >= 4 => (at + 8, length - 4),
                _ => return false,
            },
            // The rest of the page is empty.
            PADDING if delta == 0 => return true,
            PADDING => {
                time = time.wrapping_add(delta);
                match half(page, at + 4) {
                    Some(length) => at = at.saturating_add(length as usize).saturating_add(4),
                    None => return false,
                }
                continue;
            }
            TIME_EXTEND | TIME_STAMP => {
                let Some(high) = half(page, at + 4) else {
                    return false;
                };
                time = match kind {
                    TIME_EXTEND => time.wrapping_add(extended(high)),
                    _ => time >> STAMP_BITS << STAMP_BITS | extended(high) & ((1 << STAMP_BITS) - 1),
                };
                at += 8;
                continue;
            }
            words => (at + 4, words as usize * 4),
        };
        let Some(next) = data.checked_add(size).filter(|&next| next <= end) else {
            return false;
        };
        time = time.wrapping_add(delta);
        found(time, data, size);
        // Records begin at multiples of 4.
        at = next.next_multiple_of(4);
    }
    true
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of words behind its header.
    fn page(time: u64, words: &[u32]) -> Vec<u8> {
        let mut page = time.to_ne_bytes().to_vec();
        // A flag for lost records beside the length.
        page.extend(((words.len() as u64 * 4) | (1 << 31)).to_ne_bytes());
        words.iter().for_each(|word| page.extend(word.to_ne_bytes()));
        page
    }

    fn header(kind: u32, delta: u32) -> u32 {
        delta << 5 | kind
    }

    fn found(page: &[u8]) -> (Vec<(u64, usize, usize)>, bool) {
        let mut found = Vec::new();
        let whole = records(page, |time, at, size| found.push((time, at, size)));
        (found, whole)
    }

    #[test]
    fn records_have_their_times() {
        let words = [
            header(1, 5),
            7,
            // 5 bytes of data in two words, after their length with its own word.
            header(LONG, 6),
            9,
            0,
            0,
            header(TIME_EXTEND, 3),
            1,
            header(2, 1),
            0,
            0,
            header(PADDING, 2),
            4,
            header(TIME_STAMP, 50),
            0,
            header(1, 4),
            0,
            header(PADDING, 0),
            0xffff_ffff,
        ];
        let time = 1 << 60 | 1000;
        let after = time + 11 + (1 << DELTA_BITS) + 3 + 1;
        assert_eq!(
            found(&page(time, &words)),
            (
                vec![
                    (time + 5, 20, 4),
                    (time + 11, 32, 5),
                    (after, 52, 8),
                    ((1 << 60) + 54, 80, 4)
                ],
                true
            )
        );
    }

    #[test]
    fn overwritten_records_are_counted() {
        let counted = |flags: u64, rest: &[u32]| {
            let mut bytes = page(0, rest);
            bytes[8..16].copy_from_slice(&(4 | flags).to_ne_bytes());
            missed(&bytes)
        };
        assert_eq!(counted(0, &[0, 7, 0]), 0);
        assert_eq!(counted(MISSED, &[0, 7, 0]), 1);
        assert_eq!(counted(MISSED | COUNTED, &[0, 7, 0]), 7);
        assert_eq!(counted(MISSED | COUNTED, &[0]), 1);
    }

    #[test]
    fn damaged_pages_are_noticed() {
        assert!(!found(&[0; 15]).1);
        // Beyond the end: a record, a length, and the page itself.
        assert!(!found(&page(0, &[header(2, 0), 0])).1);
        assert!(!found(&page(0, &[header(LONG, 0), 3])).1);
        assert!(!found(&page(0, &[header(LONG, 0), u32::MAX])).1);
        assert!(!found(&page(0, &[header(1, 0), 0])[..20]).1);
    }

    /// Nothing in a page makes the decoder read beyond it.
    #[test]
    fn any_bytes_are_survived() {
        let mut state = 1_u64;
        for length in 0..2000_usize {
            let mut bytes = page(length as u64, &vec![0; length % 64]);
            let cut = bytes.len() - usize::from(length % 7 == 0);
            for byte in &mut bytes[DATA..] {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            for (_, at, size) in found(&bytes[..cut]).0 {
                assert!(at + size <= cut);
            }
        }
    }
}
