//! Files like those of trace-cmd, in each format, and damaged ones. Real ones have megabytes of symbols: the tests in virtual machines
//! read them.

use std::io::Cursor;

use proptest::prelude::*;
use tracer_core::event::{Event, JobKey, RingStep};
use tracer_import::{Found, Importer, Kind, TRACE_DAT, TraceDat, TraceDatError};

/// The size of a page of the file.
const PAGE: usize = 4096;

/// Formats of an event that tracer uses, of one that it does not use, and of one that it uses but cannot print.
const FORMATS: [&str; 3] = [
    "name: drm_sched_job_run\nID: 7\nformat:\n\
     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
     \tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\
     \tfield:u64 fence_context;\toffset:12;\tsize:8;\tsigned:0;\n\
     \tfield:u64 fence_seqno;\toffset:20;\tsize:8;\tsigned:0;\n\n\
     print fmt: \"fence=%llu:%llu, ring=%s\", REC->fence_context, REC->fence_seqno, __get_str(name)\n",
    "name: sched_switch\nID: 8\nformat:\n\nprint fmt: \"\"\n",
    "name: drm_sched_job_done\nID: 9\nformat:\n\nprint fmt: \"fence=%s\", __print_hex(1)\n",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Six,
    Seven,
    SevenZstd,
}

const FORMS: [Form; 3] = [Form::Six, Form::Seven, Form::SevenZstd];

/// The record of a job that runs.
fn job(seqno: u64) -> Vec<u8> {
    let mut raw = vec![7, 0, 0, 0];
    raw.extend(1234_u32.to_le_bytes());
    raw.extend((28_u32 | 6 << 16).to_le_bytes());
    raw.extend(13_u64.to_le_bytes());
    raw.extend(seqno.to_le_bytes());
    raw.extend(b"sdma0\0\0\0");
    raw
}

fn other(kind: u8) -> Vec<u8> {
    vec![kind, 0, 0, 0, 1, 0, 0, 0]
}

/// A page that begins at a time, with records 10 ns apart, after `lost` overwritten ones.
fn page(time: u64, records: &[Vec<u8>], lost: u64) -> Vec<u8> {
    let mut data = Vec::new();
    for record in records {
        assert!(record.len().is_multiple_of(4));
        data.extend(((10_u32 << 5) | (record.len() as u32 / 4)).to_le_bytes());
        data.extend(record);
    }
    let flags = if lost > 0 { 0b11_u64 << 30 } else { 0 };
    let mut page = time.to_le_bytes().to_vec();
    page.extend((data.len() as u64 | flags).to_le_bytes());
    page.extend(&data);
    page.extend(lost.to_le_bytes());
    page.resize(PAGE, 0);
    page
}

/// The pages of each processor.
fn pages() -> [Vec<u8>; 2] {
    let first = [page(1000, &[job(1), other(8)], 0), page(3000, &[job(4), other(9)], 5)];
    [first.concat(), page(2000, &[job(2), job(3)], 0)]
}

fn sized(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

fn event_formats() -> Vec<u8> {
    let mut part = 1_u32.to_le_bytes().to_vec();
    part.extend(b"gpu_scheduler\0");
    part.extend((FORMATS.len() as u32).to_le_bytes());
    FORMATS.iter().for_each(|format| part.extend(sized(format)));
    part
}

/// A file, and the places of numbers that tests change.
fn file(form: Form) -> Vec<u8> {
    let mut file = TRACE_DAT.to_vec();
    file.extend(if form == Form::Six { b"6\0" } else { b"7\0" });
    file.extend([0, 8]);
    file.extend((PAGE as u32).to_le_bytes());
    match form {
        Form::Six => six(file),
        Form::Seven => seven(file, false),
        Form::SevenZstd => seven(file, true),
    }
}

fn six(mut file: Vec<u8>) -> Vec<u8> {
    for name in [&b"header_page\0"[..], b"header_event\0"] {
        file.extend(name);
        file.extend(sized("x"));
    }
    file.extend(0_u32.to_le_bytes());
    file.extend(event_formats());
    // No symbols, and no formats of trace_printk.
    file.extend([0; 8]);
    file.extend(sized("1234 ring-jobs\n1 sh\n"));
    file.extend(2_u32.to_le_bytes());
    file.extend(b"options  \0");
    file.extend([4, 0, 7, 0, 0, 0]);
    file.extend(b"[mono] ");
    file.extend([0, 0]);
    file.extend(b"flyrecord\0");
    let pages = pages();
    let mut at = (file.len() + 32) as u64;
    for pages in &pages {
        file.extend(at.to_le_bytes());
        file.extend((pages.len() as u64).to_le_bytes());
        at += pages.len() as u64;
    }
    file.extend(pages.concat());
    file
}

fn packed(data: &[u8]) -> Vec<u8> {
    let packed = zstd::bulk::compress(data, 1).expect("zstd");
    let mut part = (packed.len() as u32).to_le_bytes().to_vec();
    part.extend((data.len() as u32).to_le_bytes());
    part.extend(packed);
    part
}

fn section(id: u16, data: &[u8], is_packed: bool) -> Vec<u8> {
    let data = if is_packed { packed(data) } else { data.to_vec() };
    let mut section = id.to_le_bytes().to_vec();
    section.extend(u16::from(is_packed).to_le_bytes());
    section.extend(0_u32.to_le_bytes());
    section.extend((data.len() as u64).to_le_bytes());
    section.extend(data);
    section
}

fn seven(mut file: Vec<u8>, is_packed: bool) -> Vec<u8> {
    file.extend(if is_packed { &b"zstd\x001.5\0"[..] } else { b"none\0\0" });
    let place = file.len();
    file.extend([0; 8]);
    let formats = file.len() as u64;
    file.extend(section(18, &event_formats(), is_packed));
    let names = file.len() as u64;
    file.extend(section(21, &sized("1234 ring-jobs\n1 sh\n"), is_packed));
    let buffer = file.len() as u64;
    file.extend(3_u16.to_le_bytes());
    file.extend(u16::from(is_packed).to_le_bytes());
    file.extend([0; 12]);
    let mut option = buffer.to_le_bytes().to_vec();
    option.extend(b"\0mono\0");
    option.extend((PAGE as u32).to_le_bytes());
    option.extend(2_u32.to_le_bytes());
    for (cpu, pages) in pages().iter().enumerate() {
        let data = if is_packed {
            // A piece for each page.
            let pieces: Vec<Vec<u8>> = pages.chunks(PAGE).map(packed).collect();
            [(pieces.len() as u32).to_le_bytes().to_vec(), pieces.concat()].concat()
        } else {
            pages.clone()
        };
        option.extend((cpu as u32).to_le_bytes());
        option.extend((file.len() as u64).to_le_bytes());
        option.extend((data.len() as u64).to_le_bytes());
        file.extend(data);
    }
    let options = file.len() as u64;
    let mut all = Vec::new();
    for (id, data) in [
        (18_u16, formats.to_le_bytes().to_vec()),
        (21, names.to_le_bytes().to_vec()),
        (3, option),
        (0, vec![0; 8]),
    ] {
        all.extend(id.to_le_bytes());
        all.extend((data.len() as u32).to_le_bytes());
        all.extend(data);
    }
    file.extend(section(0, &all, is_packed));
    file[place..place + 8].copy_from_slice(&options.to_le_bytes());
    file
}

/// Time, thread, number of the fence, ring, step.
type Job = (u64, u32, u64, String, RingStep);

/// Returns the jobs, and what was in the file.
fn import(file: &[u8]) -> Result<(Vec<Job>, Found), TraceDatError> {
    let mut dat = TraceDat::open(Cursor::new(file))?;
    let mut importer = Importer::new();
    let mut jobs = Vec::new();
    let mut sink = |event: &Event<'_>| {
        if let Event::RingJob(job) = event
            && let JobKey::Seqno { context: 13, seqno } = job.key
        {
            let ring = String::from_utf8_lossy(job.ring.unwrap_or_default()).into_owned();
            jobs.push((job.origin.time_ns, job.origin.tid, seqno, ring, job.step));
        }
    };
    while importer.record(&mut dat, &mut sink) {}
    let found = importer.finish(&mut sink);
    Ok((jobs, found))
}

#[test]
fn each_format_has_the_same_records_in_the_order_of_time() {
    for form in FORMS {
        let (jobs, found) = import(&file(form)).unwrap();
        let expected = [(1010, 1), (2010, 2), (2020, 3), (3010, 4)];
        let expected = expected.map(|(time, seqno)| (time, 1234, seqno, "sdma0".to_owned(), RingStep::Run));
        assert_eq!(jobs, expected, "{form:?}");
        assert_eq!(found.kind, Some(Kind::TraceDat));
        assert_eq!((found.events, found.unused_total, found.lost), (4, 1, 5), "{form:?}");
        assert_eq!(found.unused.get("sched_switch"), Some(&1));
        // The event whose format is not understood is one that could not be read.
        assert_eq!(
            (found.malformed_total, found.malformed[0].text.as_str()),
            (1, "drm_sched_job_done")
        );
        assert_eq!(found.span_ns, Some((1010, 3010)));
    }
}

#[test]
fn files_of_other_kinds_are_refused_with_the_reason() {
    let plain = file(Form::Seven);
    let changed = |at: usize, byte: u8| {
        let mut file = plain.clone();
        file[at] = byte;
        import(&file)
    };
    let kind = |result: Result<_, TraceDatError>| match result {
        Err(TraceDatError::Unsupported(_)) => "unsupported",
        Err(TraceDatError::Damaged(_)) => "damaged",
        Err(TraceDatError::Io(_)) => "short",
        Ok(_) => "read",
    };
    // The version, the order of bytes, the size of a word, the size of a page, the name of the compression.
    let version = TRACE_DAT.len();
    for (at, byte, expected) in [
        (0, 0, "damaged"),
        (version, b'8', "unsupported"),
        (version + 2, 1, "unsupported"),
        (version + 3, 4, "unsupported"),
        (version + 4, 3, "damaged"),
        (version + 8, b'z', "unsupported"),
    ] {
        assert_eq!(kind(changed(at, byte)), expected, "{at}");
    }
    assert_eq!(kind(import(&plain[..30])), "short");
}

#[test]
fn a_file_that_ends_early_has_what_is_before() {
    // Format 7 has its options at the end, so nothing of it can be read.
    let whole = file(Form::Six);
    let (jobs, found) = import(&whole[..whole.len() - PAGE + 30]).unwrap();
    let numbers: Vec<u64> = jobs.iter().map(|(_, _, seqno, ..)| *seqno).collect();
    assert_eq!(
        (numbers, found.malformed_total),
        (vec![1, 4], 2),
        "{:?}",
        found.malformed
    );
}

proptest! {
    /// Nothing in a file makes the importer panic, or read for ever.
    #[test]
    fn damaged_files_are_survived(
        form in 0..FORMS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut file = file(FORMS[form]);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if cut {
            file.truncate(end.index(file.len()));
        }
        if let Ok((_, found)) = import(&file) {
            prop_assert!(found.lines <= 10_000);
        }
    }
}
