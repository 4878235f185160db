//! A process with readers and parsers, like the recorder. Tests kill it or measure it.
//!
//! `readers-host [PATH]` begins to read PATH, prints its helpers, one process id per line after its role, and sleeps. `readers-host
//! --measure LIBRARY` prints the cost of readers and parsers.

use std::{
    hint::black_box,
    io::{self, Write},
    time::{Duration, Instant},
};

use tracer_capture::{
    confined::{Answer, Examine, Job, Parsers, Piece, ProcFile, Readers, Request, Want},
    runtime::resolver::{self, debug::NoDebugFiles},
    sys,
};

/// The number of repetitions of a measurement.
const TIMES: usize = 200;

fn main() {
    // SAFETY: the process does this first, while it has only one thread.
    let readers = unsafe { Readers::start() }.expect("readers");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, library] if flag == "--measure" => measure(&readers, library),
        path => serve(&readers, path.first()),
    }
}

fn serve(readers: &Readers, path: Option<&String>) {
    let pid = std::process::id();
    let far = Instant::now() + Duration::from_secs(600);
    let proc = Request::Proc {
        pid,
        file: ProcFile::Stat,
    };
    let parsers = Parsers::new(readers);
    let job = Job::Sites {
        functions: vec![(vec![0x55], 0)],
        keep: Vec::new(),
    };
    parsers.run(&job, None, &mut (), far).expect("a parser");
    let pending = path.map(|path| {
        let request = Request::Own {
            path: path.clone().into_bytes(),
            want: Want::Whole(1 << 30),
        };
        readers.begin(0, &request, None).expect("a reader")
    });
    readers.request(0, &proc, far).expect("a reader");
    let mut out = io::stdout();
    let mut say = |role: &str, pid: u32| writeln!(out, "{role} {pid}").expect("a reader of this");
    say("spawner", readers.spawner_pid());
    readers.idle_pids().into_iter().for_each(|pid| say("reader", pid));
    parsers.idle_pids().into_iter().for_each(|pid| say("parser", pid));
    if let Some(pending) = &pending {
        say("blocked", pending.pid());
    }
    say("end", 0);
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Returns the median of many runs, without the first ones.
fn median(mut measured: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..TIMES + 5)
        .map(|_| {
            let began = Instant::now();
            measured();
            began.elapsed()
        })
        .skip(5)
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn measure(readers: &Readers, library: &str) {
    let pid = std::process::id();
    let far = || Instant::now() + Duration::from_secs(60);
    let words: Vec<u64> = (0..4096).collect();
    let at = words.as_ptr().expose_provenance() as u64;
    let pieces: Vec<Piece> = (0..128)
        .map(|k| Piece {
            address: at + 64 * k,
            len: 16,
        })
        .collect();
    let by_reader = median(|| {
        let pieces = pieces.clone();
        let answer = readers.request(0, &Request::Memory { pid, pieces }, far());
        assert!(matches!(answer, Ok(Answer::Memory(_))));
    });
    let in_process = median(|| {
        let remote: Vec<libc::iovec> = pieces
            .iter()
            .map(|piece| libc::iovec {
                iov_base: piece.address as *mut libc::c_void,
                iov_len: 16,
            })
            .collect();
        let mut to = [0_u8; 128 * 16];
        let local = libc::iovec {
            iov_base: to.as_mut_ptr().cast(),
            iov_len: to.len(),
        };
        // SAFETY: `local` names `to`; the kernel checks the ranges that `remote` names.
        let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &raw const local, 1, remote.as_ptr(), 128, 0) };
        assert_eq!(read, 128 * 16);
        black_box(&to);
    });
    println!("memory, 128 pieces of 16 bytes: {by_reader:?} by a reader, {in_process:?} in process");
    let by_reader = median(|| {
        let pieces = vec![Piece { address: at, len: 8 }];
        assert!(readers.request(0, &Request::Memory { pid, pieces }, far()).is_ok());
    });
    let in_process = median(|| drop(black_box(sys::read_u64(pid, at))));
    println!("memory, a word: {by_reader:?} by a reader, {in_process:?} in process");
    let parsers = Parsers::new(readers);
    let examine = || Examine::new(readers, &parsers, pid, far()).expect("this process");
    let path = library.as_bytes();
    let found = median(|| drop(examine().in_root(path).expect("the library")));
    let file = examine().in_root(path).expect("the library");
    let peeked = median(|| assert!(examine().peek(&file).expect("a peek").names_hsa_init));
    let by_reader = median(|| drop(examine().library(&file).expect("its bytes")));
    let in_process = median(|| drop(black_box(std::fs::read(library).expect("its bytes"))));
    println!("{library}: found in {found:?}, peeked at in {peeked:?}");
    println!(
        "its {} bytes: {by_reader:?} by a reader, {in_process:?} in process",
        file.info().size
    );
    let whole = examine().library(&file).expect("its bytes");
    let by_parser = median(|| drop(examine().resolve(&whole, &mut NoDebugFiles).expect("parsed")));
    let in_process = median(|| drop(black_box(resolver::resolve(whole.bytes()))));
    println!("resolved: {by_parser:?} by a parser, {in_process:?} in process");
    assert_eq!(
        examine().resolve(&whole, &mut NoDebugFiles).expect("parsed"),
        resolver::resolve(whole.bytes())
    );
    let new = median(|| {
        // Keeps each parser busy, so that the next one is new.
        let parsers = Parsers::new(readers);
        let job = Job::Sites {
            functions: vec![(vec![0x55], 0)],
            keep: Vec::new(),
        };
        parsers.run(&job, None, &mut (), far()).expect("a parser");
    });
    println!("a new parser and its first answer: {new:?}");
}
