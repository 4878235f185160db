//! Maps files executable repeatedly, and prints how long that took. It shows what a loader costs the recorder.
//!
//! `loader [--kfd] [--times N] [--keep] FILE...` maps the first page of each file once, until the program exits, and then the first
//! page of the first file N times. With `--keep` these mappings stay until the program exits, else each is unmapped at once. It
//! prints one line, `mapped_ns=A ended_ns=B`: the time of the N mappings, and `CLOCK_MONOTONIC` after all of it.
//!
//! With `--kfd` it first makes the ioctl by which processes begin to use the KFD. From then on a recorder examines what it maps.
//!
//! `loader --fresh FOLDER` creates a new file in FOLDER, maps it and removes it, repeatedly until it is killed.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::Path,
    process::ExitCode,
    ptr,
    time::Instant,
};

use rustix::{
    mm::{MapFlags, ProtFlags, mmap, munmap},
    time::{ClockId, clock_gettime},
};

/// The number of bytes mapped of each file: one page.
const LENGTH: usize = 4096;

/// A mapping of a file's first page, unmapped when it is dropped.
struct Mapping(*mut std::ffi::c_void);

impl Mapping {
    fn of(file: &File) -> io::Result<Self> {
        // SAFETY: a new private mapping at an address that the kernel chooses; no code reads or executes it.
        let mapped = unsafe {
            mmap(
                ptr::null_mut(),
                LENGTH,
                ProtFlags::READ | ProtFlags::EXEC,
                MapFlags::PRIVATE,
                file,
                0,
            )
        };
        Ok(Self(mapped?))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: only this value owns the mapping, and nothing points into it.
        let _ = unsafe { munmap(self.0, LENGTH) };
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loader: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the ioctl by which processes begin to use the KFD, `AMDKFD_IOC_GET_VERSION`. It needs no GPU: a recorder sees the command,
/// whatever file it is made on.
fn use_kfd() {
    const GET_VERSION: libc::c_ulong = 0x8008_4b01;
    let mut version = [0_u32; 2];
    // SAFETY: the command has an argument of 8 bytes, which exists; the standard input has no such command.
    unsafe { libc::ioctl(0, GET_VERSION, version.as_mut_ptr()) };
}

/// Maps a new file each time, until the process is killed.
fn map_fresh(folder: &Path) -> io::Result<()> {
    let path = folder.join("mapped");
    loop {
        fs::write(&path, [0; LENGTH])?;
        drop(Mapping::of(&File::open(&path)?)?);
        fs::remove_file(&path)?;
    }
}

fn run() -> io::Result<()> {
    let (mut times, mut keep, mut files) = (0_usize, false, Vec::<OsString>::new());
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--keep") => keep = true,
            Some("--times") => {
                let number = words.next().and_then(|word| word.to_str()?.parse().ok());
                times = number.ok_or_else(|| io::Error::other("--times needs a number"))?;
            }
            Some("--kfd") => use_kfd(),
            Some("--fresh") => {
                let folder = words.next().ok_or_else(|| io::Error::other("--fresh needs a folder"))?;
                return map_fresh(Path::new(&folder));
            }
            _ => files.push(word),
        }
    }
    let files = files.iter().map(File::open).collect::<io::Result<Vec<File>>>()?;
    let first = files.first().ok_or_else(|| io::Error::other("no file is named"))?;
    let known = files.iter().map(Mapping::of).collect::<io::Result<Vec<_>>>()?;
    let mut kept = Vec::with_capacity(if keep { times } else { 0 });
    let began = Instant::now();
    for _ in 0..times {
        let mapping = Mapping::of(first)?;
        if keep {
            kept.push(mapping);
        }
    }
    let mapped = began.elapsed();
    drop((known, kept));
    let ended = clock_gettime(ClockId::Monotonic);
    let ended_ns = i128::from(ended.tv_sec) * 1_000_000_000 + i128::from(ended.tv_nsec);
    println!("mapped_ns={} ended_ns={ended_ns}", mapped.as_nanos());
    Ok(())
}
