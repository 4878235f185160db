//! Attacks on the readers of other users' files and memory. No other request may wait for what blocks, and the bytes that are read
//! may do no harm.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, net::UnixListener, process::CommandExt},
    },
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use tracer_capture::{
    confined::{
        Answer, Contents, Examine, Job, MAX_PER_USER, Output, Parsers, Piece, ProcFile, ReadError, Readers, Request,
        Sealed, Want,
    },
    runtime::{
        code_object, debug_files,
        resolver::{self, debug::NoDebugFiles},
    },
    sampler::{Sample, Sampler},
    wake::Waker,
};
use tracer_core::model::Position;
use tracer_faults::{
    Attack,
    blocking::{BlockingFs, BlockingMemory, Mapped, Operation},
    tries,
};

/// Two users, to whom readers are charged.
const USER: u32 = 1001;
const OTHER: u32 = 1002;

/// The start of a program's file.
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

fn readers() -> Readers {
    // SAFETY: the other thread of a test program only waits, and the C library's own locks survive a fork.
    unsafe { Readers::start() }.expect("readers")
}

/// Returns this thread as a process id: only its mount namespace has the file system that blocks.
fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Returns the deadline for an answer that must come.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Returns the deadline for an answer that does not come.
fn soon() -> Instant {
    Instant::now() + Duration::from_millis(50)
}

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) -> Result<(), String> {
    let deadline = far();
    while !holds() {
        if Instant::now() > deadline {
            return Err(format!("{what}: not within a minute"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "values are compared as assert_eq does")]
fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, expected {expected:?}"))
    }
}

/// Checks that another user's file and memory can be read.
fn others_are_served(readers: &Readers) -> Result<(), String> {
    let pid = std::process::id();
    let word = 7_u64;
    let pieces = vec![Piece {
        address: std::ptr::from_ref(&word).expose_provenance() as u64,
        len: 8,
    }];
    match readers.request(OTHER, &Request::Memory { pid, pieces }, far()) {
        Ok(Answer::Memory(memory)) => expect("another user's memory", memory.bytes, 7_u64.to_ne_bytes().to_vec())?,
        other => return Err(format!("another user's memory: {other:?}")),
    }
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let request = Request::InRoot {
        pid,
        path: own.as_os_str().as_bytes().to_vec(),
        want: Want::Ranges(vec![(0, 4)]),
    };
    match readers.request(OTHER, &request, far()) {
        Ok(Answer::File(file)) => expect("another user's file", file.contents.bytes(), b"\x7fELF"),
        other => Err(format!("another user's file: {other:?}")),
    }
}

#[test]
fn a_file_system_that_never_answers_blocks_its_user_only() {
    // As many distant places as there can be blocked readers: a reader that waits for a page which another one reads can be killed.
    const APART: u64 = 4 << 20;
    let contents = vec![0x90; MAX_PER_USER * APART as usize];
    let fs = BlockingFs::mount(contents.clone()).expect("a FUSE mount");
    let readers = readers();
    let pid = own_thread();
    let mut attack = Attack::new("an executable mapping on FUSE that never answers");
    for operation in Operation::ALL {
        for _ in 0..tries(1, 20) {
            let mapped = Mapped::new(&File::open(fs.path()).expect("open"), contents.len()).expect("map");
            let (start, end) = mapped.range();
            let mapping = |want| Request::Mapped {
                pid,
                start,
                end,
                device: String::new(),
                inode: 2,
                path: Vec::new(),
                want,
            };
            let uri = |want| Request::InRoot {
                pid,
                path: fs.path().as_os_str().as_bytes().to_vec(),
                want,
            };
            let place = |number: u64| Want::Ranges(vec![(number * APART, 16)]);
            let all = || Want::Whole(contents.len() as u64);
            // A reader that waits for a page can be killed, and its place is free again. A reader that waits for the server's
            // answer cannot be killed.
            let stays = operation != Operation::Read;
            let outcome = || -> Result<(), String> {
                fs.block(Some(operation));
                for request in [mapping(place(0)), uri(place(1)), mapping(place(2)), uri(place(3))] {
                    let waiting = fs.waiting();
                    let read = readers.begin(USER, &request, None);
                    let read = read.map_err(|error| format!("a blocked read: {error}"))?;
                    // A reader whose request the server has not taken yet can be killed, and its place would be free again. (The
                    // kernel sends only some read-ahead requests.)
                    if stays {
                        until("the server has the request", || fs.waiting() > waiting)?;
                    }
                    expect("a blocked read", read.wait(soon()).err(), Some(ReadError::Blocked))?;
                    others_are_served(&readers)?;
                }
                if stays {
                    expect("blocked", readers.blocked(), vec![(USER, MAX_PER_USER)])?;
                    // The answer comes at once, long before the deadline.
                    let answer = readers.request(USER, &mapping(all()), far());
                    expect("the fifth read", answer.err(), Some(ReadError::NotExamined))?;
                    let begun = readers.begin(USER, &uri(all()), None).err();
                    expect("the sixth read", begun, Some(ReadError::NotExamined))?;
                    others_are_served(&readers)?;
                }
                // A reader that is blocked in the kernel exits when the file system answers.
                fs.block(None);
                until("the blocked readers go", || readers.blocked().is_empty())?;
                match readers.request(USER, &mapping(all()), far()) {
                    Ok(Answer::File(read)) => expect("the file", read.contents.bytes() == contents.as_slice(), true),
                    other => Err(format!("the file, when its system answers: {other:?}")),
                }
            };
            attack.count(outcome().map_err(|harm| format!("{operation:?}: {harm}")));
            fs.block(None);
            let _ = until("the blocked readers go", || readers.blocked().is_empty());
        }
    }
    attack.finish();
}

#[test]
fn memory_that_nobody_fills_blocks_its_user_only() {
    let readers = readers();
    let pid = std::process::id();
    let memory = BlockingMemory::new(16 << 12).expect("userfaultfd");
    let mut attack = Attack::new("memory behind a userfaultfd");
    for _ in 0..tries(2, 50) {
        let request = |page: u64| Request::Memory {
            pid,
            pieces: vec![Piece {
                address: memory.address() + 4096 * page,
                len: 16,
            }],
        };
        let outcome = || -> Result<(), String> {
            for page in 0..6 {
                let answer = readers.request(USER, &request(page), soon());
                // The kernel lets a killed reader exit here, so there may be room for another one.
                match answer {
                    Err(ReadError::Blocked | ReadError::NotExamined) => {}
                    other => return Err(format!("memory that is not there: {other:?}")),
                }
                others_are_served(&readers)?;
            }
            until("the killed readers go", || readers.blocked().is_empty())
        };
        attack.count(outcome());
    }
    attack.finish();
}

#[test]
fn the_sampler_passes_over_memory_that_blocks() {
    let memory = BlockingMemory::new(16 << 12).expect("userfaultfd");
    let mut attack = Attack::new("queues in memory behind a userfaultfd, sampled");
    for _ in 0..tries(1, 20) {
        // The victim belongs to another user. Its first mapping is its program, with an ELF header.
        let mut victim = Command::new("sleep").arg("600").uid(OTHER).spawn().expect("sleep");
        let maps = format!("/proc/{}/maps", victim.id());
        let mapped = || {
            let maps = std::fs::read_to_string(&maps).unwrap_or_default();
            let first = maps
                .lines()
                .next()
                .filter(|line| line.ends_with("sleep") || line.ends_with("coreutils"));
            first.and_then(|line| u64::from_str_radix(line.split_once('-')?.0, 16).ok())
        };
        let queue = |pid: u32, at: u64| Position {
            pid,
            handle: at,
            read_pointer: at,
            write_pointer: at + 8,
            ring: None,
        };
        let outcome = || -> Result<(), String> {
            until("the program of sleep", || mapped().is_some())?;
            let of_victim = queue(victim.id(), mapped().unwrap_or_default());
            let waker = Waker::new().map_err(|e| e.to_string())?;
            let sampler = Sampler::start(readers(), waker).map_err(|e| e.to_string())?;
            let own = std::process::id();
            let mut queues: Vec<Position> = (0..16).map(|page| queue(own, memory.address() + 4096 * page)).collect();
            queues.push(of_victim);
            sampler.watch(queues);
            let seen = |sample: &Sample| match sample {
                Sample::Queue(queue) => queue.handle == of_victim.handle && queue.read_index as u32 == ELF,
                Sample::Signal(_) | Sample::Taken(_) => false,
            };
            for _ in 0..3 {
                until("a sample of the other user's queue", || {
                    sampler.samples().any(|sample| seen(&sample))
                })?;
            }
            // The sampler ends, and has sampled the other user's queue once more.
            let last = sampler.finish();
            expect("the last sample", last.iter().any(seen), true)
        };
        attack.count(outcome());
        victim.kill().expect("kill");
        victim.wait().expect("wait");
    }
    attack.finish();
}

#[test]
fn an_event_loop_waits_for_nobody() {
    let fs = BlockingFs::mount(vec![1; 100]).expect("a FUSE mount");
    let readers = readers();
    let pid = own_thread();
    let path = fs.path().as_os_str().as_bytes().to_vec();
    let want = Want::Whole(100);
    let request = Request::InRoot { pid, path, want };
    fs.block(Some(Operation::Read));
    let mut pending = readers.begin(USER, &request, None).expect("a reader");
    until("the read waits", || fs.waiting() > 0).unwrap();
    assert!(pending.take().is_none());
    others_are_served(&readers).unwrap();
    let more: Vec<_> = (0..3).map(|_| readers.begin(USER, &request, None).unwrap()).collect();
    assert_eq!(readers.begin(USER, &request, None).err(), Some(ReadError::Busy));
    fs.block(None);
    poll(&mut [PollFd::new(&pending, PollFlags::IN)], None).unwrap();
    let Some(Ok(Answer::File(file))) = pending.take() else {
        panic!("no file");
    };
    assert_eq!(file.contents.bytes(), [1; 100]);
    assert!(pending.take().is_none());
    // Requests cancelled before they are answered, or after. Both end.
    drop(more);
    until("readers that were given up go", || readers.blocked().is_empty()).unwrap();
}

#[test]
fn only_regular_files_are_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let fifo = std::ffi::CString::new(at("fifo").as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is NUL-terminated.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o666) }, 0);
    let _socket = UnixListener::bind(at("socket")).expect("a socket");
    for (name, target) in [
        ("zero", "/dev/zero"),
        ("tty", "/dev/tty"),
        ("link", "fifo"),
        ("folder", "/"),
    ] {
        std::os::unix::fs::symlink(target, at(name)).expect("a link");
    }
    std::os::unix::fs::symlink("/proc/self/root/etc/passwd", at("magic")).expect("a link");
    std::fs::write(at("file"), b"plain").expect("a file");
    let readers = readers();
    let parsers = Parsers::new(&readers);
    let pid = std::process::id();
    let examine = || Examine::new(&readers, &parsers, pid, far()).expect("this process");
    let mut attack = Attack::new("FIFOs, devices, folders, sockets and links where a file is named");
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    for name in ["fifo", "socket", "zero", "tty", "link", "folder"] {
        let found = examine().in_root(&bytes(&at(name))).err();
        attack.count(expect(name, found, Some(ReadError::NotRegular)));
        let found = examine().own(&at(name)).err();
        attack.count(expect(name, found, Some(ReadError::NotRegular)));
        let uri = format!("file://{}", at(name).display());
        let found = examine().code_object(uri.as_bytes(), None).err();
        let unreadable = tracer_core::code_object::KernelsUnread::Unreadable;
        attack.count(expect(name, found, Some(unreadable)));
    }
    let magic = examine().in_root(&bytes(&at("magic"))).err();
    attack.count(expect("a magic link", magic, Some(ReadError::Refused(libc::ELOOP))));
    let zero = Mapped::new(&File::open("/dev/zero").expect("open"), 4096).expect("map");
    let (start, end) = zero.range();
    let mapping = examine()
        .mappings()
        .expect("mappings")
        .into_iter()
        .find(|mapping| (mapping.start, mapping.end) == (start, end));
    let found = examine().mapped(&mapping.expect("the mapping of /dev/zero")).err();
    attack.count(expect("a mapped device", found, Some(ReadError::NotRegular)));
    let file = examine().in_root(&bytes(&at("file"))).expect("the file");
    let plain = examine().whole(&file, 5).expect("the file");
    attack.count(expect("a file", plain.bytes(), b"plain"));
    // A name that points elsewhere after the file was found.
    std::fs::remove_file(at("file")).expect("remove");
    std::fs::rename(at("fifo"), at("file")).expect("rename");
    let plain = examine().whole(&file, 5).expect("the same file");
    attack.count(expect("a file that was replaced", plain.bytes(), b"plain"));
    attack.finish();
}

/// A pseudo-random sequence that is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            let value = [0, 0xff, 1, self.below(256) as u8][self.below(4)];
            match self.below(8) {
                0 => bytes.truncate(at),
                1 => bytes.extend(vec![value; at.min(4096)]),
                _ => bytes
                    .iter_mut()
                    .skip(at)
                    .take(1 + self.below(8))
                    .for_each(|byte| *byte = value),
            }
        }
    }
}

/// Checks that a parser's result for these bytes equals the recorder's own.
fn same(parsers: &Parsers, target: &str, bytes: &[u8]) -> Result<(), String> {
    let whole = Sealed::copy_of(bytes).map_err(|e| e.to_string())?;
    let run = |job: &Job| {
        parsers
            .run(job, Some(&whole), &mut Alone, far())
            .map_err(|error| error.to_string())
    };
    let differs = |is_same: bool| {
        if is_same {
            Ok(())
        } else {
            Err(format!("{target}: another result"))
        }
    };
    match target {
        "resolver" => {
            let expected = resolver::resolve_with(bytes, &mut NoDebugFiles);
            differs(run(&Job::Resolve)? == Output::Resolve(Box::new(expected)))?;
            differs(run(&Job::BuildId)? == Output::BuildId(resolver::build_id(bytes)))
        }
        "debug_file" => differs(run(&Job::DebugSymbols)? == Output::DebugSymbols(debug_files::read(&bytes))),
        "code_object" => {
            let size = bytes.len() as u64;
            let Output::CodeObject(found) = run(&Job::CodeObject { offset: 0, size })? else {
                return Err("another output".to_owned());
            };
            let found = found.map(code_object::Contents::from).ok();
            differs(found == code_object::parse(bytes).ok())
        }
        other => Err(format!("no parser for {other}")),
    }
}

/// The job has the whole input, and there are no debug files.
struct Alone;

impl tracer_capture::confined::Input for Alone {
    fn bytes(&mut self, _: u64, _: u64) -> Option<Vec<u8>> {
        None
    }

    fn debug_file(&mut self, key: &resolver::debug::DebugKey) -> Option<resolver::debug::Lookup> {
        Some(resolver::debug::DebugFiles::find(&mut NoDebugFiles, key))
    }
}

#[test]
fn parsers_find_in_damaged_files_what_the_recorder_would() {
    let readers = readers();
    let parsers = Parsers::new(&readers);
    let mut attack = Attack::new("damaged runtimes, debug files and code objects, given to a parser");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    // The list of code objects is not a file: the recorder follows it, with its own limits.
    let files = tracer_fuzz::ALL
        .iter()
        .filter(|target| target.name != "code_object_list");
    for target in files {
        let seeds = (target.seeds)();
        for seed in &seeds {
            attack.count(same(&parsers, target.name, seed));
        }
        for _ in 0..tries(400, 20_000) {
            let mut damaged = seeds[random.below(seeds.len())].clone();
            random.damage(&mut damaged);
            attack.count(same(&parsers, target.name, &damaged));
        }
    }
    attack.finish();
}

/// A file that makes a parser allocate or loop beyond its limits only loses its own result. The next file is parsed.
#[test]
fn a_parser_that_does_not_end_costs_its_file_only() {
    let readers = readers();
    let parsers = Parsers::new(&readers);
    let deaf = &mut Deaf;
    // It sends a request, and gets no answer in time.
    let late = parsers.run(&Job::Peek, None, deaf, soon());
    assert_eq!(late.err(), Some(tracer_capture::confined::ParseFailed::Late));
    let empty = Sealed::copy_of(b"").unwrap();
    assert_eq!(
        parsers.run(&Job::BuildId, Some(&empty), &mut (), far()).unwrap(),
        Output::BuildId(None)
    );
}

/// A source that takes longer to answer than it may.
struct Deaf;

impl tracer_capture::confined::Input for Deaf {
    fn bytes(&mut self, _: u64, _: u64) -> Option<Vec<u8>> {
        std::thread::sleep(Duration::from_millis(100));
        None
    }
}

fn process(pid: u32) -> OwnedFd {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    pidfd_open(pid, PidfdFlags::empty()).expect("a process")
}

fn has_ended(process: &OwnedFd) -> bool {
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&none)).is_ok_and(|ready| ready > 0)
}

#[test]
fn nothing_outlives_a_killed_recorder() {
    let fs = BlockingFs::mount(vec![1; 100]).expect("a FUSE mount");
    let mut attack = Attack::new("SIGKILL of the recorder while a reader is blocked");
    for _ in 0..tries(3, 50) {
        fs.block(Some(Operation::Read));
        let mut host = Command::new(env!("CARGO_BIN_EXE_readers-host"))
            .arg(fs.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("readers-host");
        let lines = BufReader::new(host.stdout.take().expect("its output")).lines();
        let mut helpers: Vec<(String, OwnedFd)> = Vec::new();
        for line in lines.map_while(Result::ok) {
            let (role, pid) = line.split_once(' ').expect("a role and a process id");
            if role == "end" {
                break;
            }
            helpers.push((role.to_owned(), process(pid.parse().expect("a process id"))));
        }
        let outcome = || -> Result<(), String> {
            let mut roles: Vec<&str> = helpers.iter().map(|(role, _)| role.as_str()).collect();
            roles.sort_unstable();
            expect("helpers", roles, vec!["blocked", "parser", "reader", "spawner"])?;
            until("the read waits", || fs.waiting() > 0)?;
            for (role, helper) in &helpers {
                expect(role, has_ended(helper), false)?;
            }
            host.kill().map_err(|e| e.to_string())?;
            host.wait().map_err(|e| e.to_string())?;
            for (role, helper) in helpers.iter().filter(|(role, _)| role != "blocked") {
                until(role, || has_ended(helper))?;
            }
            // Its request is on its way to the file system. The kernel waits for the answer, or for the server's exit.
            fs.block(None);
            helpers
                .iter()
                .try_for_each(|(role, helper)| until(role, || has_ended(helper)))
        };
        let mut outcome = outcome;
        attack.count(outcome());
    }
    attack.finish();
}

#[test]
fn standard_streams_are_not_kept_open() {
    let mut host = Command::new(env!("CARGO_BIN_EXE_readers-host"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("readers-host");
    let mut lines = BufReader::new(host.stdout.take().expect("its output")).lines();
    let spawner = lines.next().expect("a line").expect("a line");
    let spawner = process(
        spawner
            .split_once(' ')
            .expect("two words")
            .1
            .parse()
            .expect("a process id"),
    );
    host.kill().expect("kill");
    host.wait().expect("wait");
    // The end of the output comes, although it may come before the helpers' exit.
    assert!(lines.all(|line| line.is_ok()));
    until("the spawner", || has_ended(&spawner)).unwrap();
}

#[test]
fn files_of_proc_are_read() {
    let readers = readers();
    let pid = std::process::id();
    for file in [
        ProcFile::Maps,
        ProcFile::Stat,
        ProcFile::Status,
        ProcFile::Comm,
        ProcFile::Cgroup,
    ] {
        let Ok(Answer::Bytes(contents)) = readers.request(USER, &Request::Proc { pid, file }, far()) else {
            panic!("{file:?}");
        };
        assert!(!contents.bytes().is_empty());
        assert!(matches!(contents, Contents::Inline(_) | Contents::Sealed(_)));
    }
    let gone = Request::Proc {
        pid: u32::MAX >> 1,
        file: ProcFile::Stat,
    };
    assert_eq!(
        readers.request(USER, &gone, far()).err(),
        Some(ReadError::Refused(libc::ENOENT))
    );
}
