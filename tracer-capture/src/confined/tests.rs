use std::{
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use rustix::process::{Pid, getpriority_process};

use super::{channel::Channel, request::Reply, *};
use crate::{
    runtime::{code_object::list::Memory as _, elf_peek::Peek, resolver},
    target::proc_maps,
};

/// SAFETY of what follows: the other thread of a test program only waits, and the C library's own locks survive a fork.
fn readers() -> Readers {
    // SAFETY: as above.
    unsafe { Readers::start() }.unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn status(pid: u32, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().to_owned()
}

#[test]
fn packets_arrive_whole_with_their_descriptors() {
    let (a, b) = Channel::pair().unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let request = Request::Memory {
        pid: 7,
        pieces: vec![
            Piece {
                address: 1 << 47,
                len: 16
            };
            request::MAX_PIECES
        ],
    };
    a.send(&request, &[std::os::fd::AsFd::as_fd(&file)]).unwrap();
    let message = b.receive().unwrap();
    assert_eq!(message.value::<Request>().unwrap(), request);
    assert_eq!(message.descriptors.len(), 1);
    assert!(b.try_receive().unwrap().is_none());
    let late = b.receive_until(Instant::now() + Duration::from_millis(1)).unwrap_err();
    assert_eq!(late.kind(), std::io::ErrorKind::TimedOut);
    let long = a.send(&vec![0_u8; 1 << 20], &[]).unwrap_err();
    assert_eq!(long.raw_os_error(), Some(libc::EMSGSIZE));
    drop(a);
    assert_eq!(b.receive().unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn what_is_no_message_is_an_error() {
    let (a, b) = Channel::pair().unwrap();
    for bytes in [vec![0xff_u8; 40], vec![3, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
        // This is a sequence without its length.
        rustix::io::write(&a, &bytes).unwrap();
        let message = b.receive().unwrap();
        assert!(message.value::<Reply>().is_err(), "{bytes:?}");
    }
}

#[test]
fn only_sealed_memory_files_are_taken() {
    let sealed = Sealed::copy_of(b"bytes").unwrap();
    assert_eq!(sealed.bytes(), b"bytes");
    let copy = || std::os::fd::AsFd::as_fd(&sealed).try_clone_to_owned().unwrap();
    assert_eq!(Sealed::take(copy(), 5).unwrap().bytes(), b"bytes");
    assert!(Sealed::take(copy(), 4).is_err());
    assert!(Sealed::take(super::sealed::new_file().unwrap(), 4).is_err());
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    assert!(Sealed::take(file.into(), u64::MAX).is_err());
    assert_eq!(Sealed::copy_of(b"").unwrap().bytes(), b"");
}

/// Memory that `process_vm_readv` refuses, as it refuses a driver's: pages without access. /proc/PID/mem shows them.
#[test]
fn memory_that_cannot_be_looked_up_is_asked_for() {
    const LEN: usize = 3 << 20;
    // SAFETY: a new mapping, which is filled before its protection changes.
    let at = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::mmap(
            std::ptr::null_mut(),
            LEN,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        at.cast::<u8>().write_bytes(7, LEN);
        assert_eq!(libc::mprotect(at, LEN, libc::PROT_NONE), 0);
        at.expose_provenance() as u64
    };
    let plain = [9_u8; 16];
    let own = plain.as_ptr().expose_provenance() as u64;
    let piece = |address, len| Piece { address, len };
    let readers = readers();
    let pid = std::process::id();
    let read = |pieces: Vec<Piece>| match readers.request(0, &Request::Memory { pid, pieces }, soon()).unwrap() {
        Answer::Memory(memory) => (memory.there, memory.bytes),
        _ => panic!("another answer"),
    };
    let mixed = vec![
        piece(own, 16),
        piece(at, 8),
        piece(8, 8),
        piece(at + 64, 16),
        piece(own, 8),
    ];
    let (there, bytes) = read(mixed);
    assert_eq!(there, [true, true, false, true, true]);
    assert_eq!(
        bytes,
        [[9; 16].as_slice(), &[7; 8], &[0; 8], &[7; 16], &[9; 8]].concat()
    );
    // One request reads a limited part of such memory, in whole pieces.
    let half = 1 << 19;
    let (there, bytes) = read((0..5).map(|k| piece(at + k * u64::from(half), half)).collect());
    assert_eq!(there, [true, true, false, false, false]);
    let (read, unread) = bytes.split_at(1 << 20);
    assert!(read.iter().all(|byte| *byte == 7) && unread.iter().all(|byte| *byte == 0));
}

#[test]
fn memory_is_read_and_absent_pieces_are_marked() {
    let readers = readers();
    let memory: Vec<u64> = (0..2048).collect();
    let at = memory.as_ptr().expose_provenance() as u64;
    let pid = std::process::id();
    let mut pieces: Vec<Piece> = (0..1024)
        .map(|k| Piece {
            address: at + 16 * k,
            len: 16,
        })
        .collect();
    for gone in [0, 7, 500, 501, 1023] {
        pieces[gone].address = 8;
    }
    for _ in 0..3 {
        let pieces = pieces.clone();
        let Answer::Memory(read) = readers.request(0, &Request::Memory { pid, pieces }, soon()).unwrap() else {
            panic!("another answer");
        };
        assert!(read.time_ns <= read.after_ns);
        for (k, bytes) in read.bytes.as_chunks::<16>().0.iter().enumerate() {
            let there = ![0, 7, 500, 501, 1023].contains(&k);
            assert_eq!(read.there[k], there, "{k}");
            let words = [2 * k as u64, 2 * k as u64 + 1].map(|word| if there { word } else { 0 });
            assert_eq!(bytes.as_chunks::<8>().0, words.map(u64::to_ne_bytes));
        }
    }
    // One reader answered all requests.
    assert_eq!(readers.idle_pids().len(), 1);
    let gone = Request::Memory {
        pid: u32::MAX >> 1,
        pieces: vec![Piece { address: 8, len: 8 }],
    };
    assert_eq!(
        readers.request(0, &gone, soon()).unwrap_err(),
        ReadError::Refused(libc::ESRCH)
    );
    // This is more than a message holds.
    let large = vec![7_u8; 1 << 20];
    let pieces = vec![Piece {
        address: large.as_ptr().expose_provenance() as u64,
        len: 1 << 20,
    }];
    let Ok(Answer::Memory(read)) = readers.request(0, &Request::Memory { pid, pieces }, soon()) else {
        panic!("another answer");
    };
    assert!(read.bytes == large);
}

#[test]
fn prepared_readers_take_the_first_requests_and_parsers_are_in_no_hurry() {
    let readers = readers();
    readers.prepare().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while readers.idle_pids().len() < 4 {
        assert!(Instant::now() < until, "{:?}", readers.idle_pids());
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = readers.idle_pids();
    let request = || {
        let pid = std::process::id();
        let file = ProcFile::Stat;
        readers.begin(0, &Request::Proc { pid, file }, None).unwrap()
    };
    let pending = [(); 4].map(|()| request());
    let mut used = pending.each_ref().map(super::readers::Pending::pid).to_vec();
    for request in pending {
        request.wait(soon()).unwrap();
    }
    let mut after = readers.idle_pids();
    used.sort_unstable();
    after.sort_unstable();
    assert_eq!(used, after);
    assert!(before.iter().all(|pid| used.contains(pid)));

    let parsers = Parsers::new(&readers);
    let sites = Job::Sites {
        functions: Vec::new(),
        keep: Vec::new(),
    };
    parsers.run(&sites, None, &mut (), soon()).unwrap();
    // Without CAP_SYS_NICE, readers keep the usual niceness.
    let usual = crate::sys::niceness();
    let may_hurry = u64::from_str_radix(&status(std::process::id(), "CapEff"), 16).unwrap() & 1 << 23 != 0;
    let of = |pid: u32| getpriority_process(Pid::from_raw(pid.cast_signed())).unwrap();
    let reader = if may_hurry { -15 } else { usual };
    assert_eq!((of(before[0]), of(parsers.idle_pids()[0])), (reader, usual));
}

#[test]
fn readers_and_parsers_have_the_rights_they_need_and_no_others() {
    let readers = readers();
    let parsers = Parsers::new(&readers);
    let pid = std::process::id();
    let proc = Request::Proc {
        pid,
        file: ProcFile::Stat,
    };
    readers.request(0, &proc, soon()).unwrap();
    let sites = Job::Sites {
        functions: vec![(vec![0x55, 0xc3], 0)],
        keep: Vec::new(),
    };
    let Output::Sites(sites) = parsers.run(&sites, None, &mut (), soon()).unwrap() else {
        panic!("no sites");
    };
    assert_eq!(sites[0].unwrap().instruction, resolver::InstructionKind::Push);
    let reader = readers.idle_pids()[0];
    let parser = parsers.idle_pids()[0];
    assert_eq!(status(reader, "Name"), "tracer-reader");
    assert_eq!(status(parser, "Name"), "tracer-parser");
    let has_rights = u64::from_str_radix(&status(pid, "CapEff"), 16).unwrap();
    let wanted = 1 << 2 | 1 << 19 | 1 << 40;
    for (pid, capabilities) in [(reader, has_rights & wanted), (parser, 0)] {
        for set in ["CapEff", "CapPrm"] {
            let set = u64::from_str_radix(&status(pid, set), 16).unwrap();
            assert_eq!(set, capabilities);
        }
        for set in ["CapInh", "CapAmb"] {
            assert_eq!(status(pid, set), "0000000000000000");
        }
        if has_rights & 1 << 8 != 0 {
            assert_eq!(status(pid, "CapBnd"), "0000000000000000");
        }
        assert_eq!(
            (status(pid, "NoNewPrivs"), status(pid, "Seccomp")),
            ("1".into(), "2".into())
        );
        let mut open: Vec<i32> = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
            .collect();
        open.sort_unstable();
        assert_eq!(open.len(), 4, "{open:?}");
        for standard in 0..3 {
            let leads = std::fs::read_link(format!("/proc/{pid}/fd/{standard}")).unwrap();
            assert!(leads.to_string_lossy().starts_with("pipe:"), "{leads:?}");
        }
    }
}

#[test]
fn the_file_behind_a_mapping_is_found_and_peeked_at() {
    let readers = readers();
    let parsers = Parsers::new(&readers);
    let pid = std::process::id();
    let examine = Examine::new(&readers, &parsers, pid, soon()).unwrap();
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let mappings = examine.mappings().unwrap();
    assert_eq!(mappings, proc_maps::executable(pid).unwrap());
    let mapping = mappings.iter().find(|m| m.path == own.to_string_lossy()).unwrap();
    let file = examine.mapped(mapping).unwrap();
    let metadata = std::fs::metadata(&own).unwrap();
    use std::os::unix::fs::MetadataExt;
    let info = file.info();
    assert_eq!(
        (info.device, info.inode, info.size, info.changed),
        (
            metadata.dev(),
            metadata.ino(),
            metadata.len(),
            (metadata.ctime(), metadata.ctime_nsec())
        )
    );
    assert_eq!(examine.peek(&file).unwrap(), Peek::default());
    let link = std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsFd::as_fd(&file).as_raw_fd()));
    assert_eq!(link.unwrap(), own);
    let whole = examine.whole(&file, 1 << 30).unwrap();
    assert!(whole.bytes() == std::fs::read(&own).unwrap());
    assert_eq!(examine.whole(&file, 10).unwrap_err(), ReadError::TooLarge);
    assert_eq!(examine.build_id(&whole).unwrap(), resolver::build_id(whole.bytes()));
    assert!(examine.began().unwrap().is_some());
    assert!(examine.calls().unwrap().iter().any(|(tid, _)| *tid == pid));
}

#[test]
fn pointers_are_followed_by_pages() {
    let readers = readers();
    let parsers = Parsers::new(&readers);
    let examine = Examine::new(&readers, &parsers, std::process::id(), soon()).unwrap();
    let words: Vec<u64> = (0..4096).collect();
    let at = words.as_ptr().expose_provenance() as u64;
    let memory = examine.memory();
    for k in [0, 1, 511, 512, 4095] {
        assert_eq!(memory.word(at + 8 * k).unwrap(), k);
    }
    let mut across = [0; 8192];
    memory.read(at + 4, &mut across).unwrap();
    assert_eq!(across[4..12], 1_u64.to_ne_bytes());
    assert_eq!(memory.word(8).unwrap_err().raw_os_error(), Some(libc::EFAULT));
}

#[test]
fn a_killed_reader_or_parser_costs_one_request_at_most() {
    let readers = readers();
    let parsers = Parsers::new(&readers);
    let pid = std::process::id();
    let proc = Request::Proc {
        pid,
        file: ProcFile::Comm,
    };
    for _ in 0..3 {
        readers.request(0, &proc, soon()).unwrap();
        kill(readers.idle_pids()[0]);
    }
    readers.request(0, &proc, soon()).unwrap();
    let job = Job::BuildId;
    let empty = Sealed::copy_of(b"").unwrap();
    parsers.run(&job, Some(&empty), &mut (), soon()).unwrap();
    kill(parsers.idle_pids()[0]);
    let again = parsers.run(&job, Some(&empty), &mut (), soon());
    let again = again.or_else(|_| parsers.run(&job, Some(&empty), &mut (), soon()));
    assert_eq!(again.unwrap(), Output::BuildId(None));
}

#[test]
fn the_user_of_a_process_is_its_real_one() {
    assert_eq!(user_of(std::process::id()).unwrap(), rustix::process::getuid().as_raw());
    assert!(user_of(u32::MAX >> 1).is_err());
    assert_eq!(user_of(1).unwrap(), 0);
}

/// Kills a child of the spawner, for which no process has waited yet.
fn kill(pid: u32) {
    crate::target::launch::Process::open(pid)
        .unwrap()
        .signal(rustix::process::Signal::KILL)
        .unwrap();
}
