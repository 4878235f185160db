//! Runs a command in an unusual environment: in its own pid and mount namespaces, behind a program without a dynamic linker, with a
//! folder that is an overlay, or many times at once or one after the other. tracer must work in all of them.
//!
//! Each of several runs gets its own JSON files: `did.json` becomes `did.0.json`, and so on.

use std::{
    env,
    ffi::{CString, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    ptr,
};

const USAGE: &str =
    "elsewhere [--overlay LOWER AT] [--launcher FILE] [--namespaces] [--at-once N | --in-turn N] -- COMMAND...";

#[derive(Default)]
struct Options {
    overlay: Option<(PathBuf, PathBuf)>,
    launcher: Option<PathBuf>,
    namespaces: bool,
    at_once: usize,
    in_turn: usize,
    command: Vec<OsString>,
}

fn parse() -> Option<Options> {
    let mut options = Options {
        at_once: 1,
        in_turn: 1,
        ..Options::default()
    };
    let mut words = env::args_os().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next()?.to_str()?.parse().ok();
        match word.to_str()? {
            "--at-once" => options.at_once = number()?,
            "--in-turn" => options.in_turn = number()?,
            "--overlay" => options.overlay = Some((words.next()?.into(), words.next()?.into())),
            "--launcher" => options.launcher = Some(words.next()?.into()),
            "--namespaces" => options.namespaces = true,
            "--" => options.command = words.by_ref().collect(),
            _ => return None,
        }
    }
    (!options.command.is_empty()).then_some(options)
}

fn main() -> ExitCode {
    let Some(options) = parse() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("elsewhere: {error}");
            ExitCode::from(125)
        }
    }
}

fn run(options: &Options) -> io::Result<u8> {
    if let Some((lower, at)) = &options.overlay {
        namespaces(libc::CLONE_NEWNS)?;
        overlay(lower, at)?;
    }
    if options.namespaces {
        namespaces(libc::CLONE_NEWNS | libc::CLONE_NEWPID)?;
    }
    if let Some(launcher) = &options.launcher {
        fs::write(launcher, static_launcher())?;
        fs::set_permissions(launcher, fs::Permissions::from_mode(0o755))?;
    }
    let mut number = 0;
    for _ in 0..options.in_turn {
        let mut children = Vec::new();
        for _ in 0..options.at_once {
            children.push(command(options, number).spawn()?);
            number += 1;
        }
        for mut child in children {
            let status = child.wait()?;
            if !status.success() {
                eprintln!("elsewhere: a command ended with {status}");
                return Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
            }
        }
    }
    Ok(0)
}

fn command(options: &Options, number: usize) -> Command {
    let several = options.at_once * options.in_turn > 1;
    let own = |word: &OsString| {
        let path = Path::new(word);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(extension @ ("json" | "jsonl")) if several => {
                path.with_extension(format!("{number}.{extension}")).into_os_string()
            }
            _ => word.clone(),
        }
    };
    let words = options.command.iter().map(own);
    let mut words: Vec<OsString> = options.launcher.iter().map(OsString::from).chain(words).collect();
    let mut command = Command::new(words.remove(0));
    command.args(words);
    if options.namespaces {
        // The first process of the namespace, or one of its children. /proc must show those processes.
        let mount_proc = || mount("proc", "/proc", "proc", 0, "");
        // SAFETY: between fork and exec, this makes only system calls, on strings that are constants except for their end.
        unsafe { command.pre_exec(mount_proc) };
    }
    command
}

fn namespaces(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: this changes only what this process, with its one thread, sees.
    if unsafe { libc::unshare(flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    mount("", "/", "", libc::MS_REC | libc::MS_PRIVATE, "")
}

/// Mounts `lower` at `at`, with a layer above it that takes changes. Changes the files in it whose names begin with `up`, so that
/// they are copied up.
fn overlay(lower: &Path, at: &Path) -> io::Result<()> {
    let layers = at.with_extension("layers");
    fs::create_dir(&layers)?;
    fs::create_dir_all(at)?;
    mount("tmpfs", path(&layers)?, "tmpfs", 0, "")?;
    let (upper, work) = (layers.join("upper"), layers.join("work"));
    fs::create_dir(&upper)?;
    fs::create_dir(&work)?;
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    mount("overlay", path(at)?, "overlay", 0, &options)?;
    for entry in fs::read_dir(at)? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(b"up") {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

fn path(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn mount(source: &str, at: &str, kind: &str, flags: libc::c_ulong, options: &str) -> io::Result<()> {
    let [source, at, kind, options] = [source, at, kind, options].map(CString::new);
    let (source, at, kind, options) = (source?, at?, kind?, options?);
    let or_null = |text: &CString| if text.is_empty() { ptr::null() } else { text.as_ptr() };
    // SAFETY: the strings live until the call returns, or are null where the kernel ignores them.
    let done = unsafe {
        libc::mount(
            or_null(&source),
            at.as_ptr(),
            or_null(&kind),
            flags,
            or_null(&options).cast(),
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns a program that executes the command in its arguments, and maps nothing of its own: no dynamic linker, no library.
///
/// `execve(argv[1], argv + 1, envp)`, then `exit(127)`.
fn static_launcher() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const CODE: &[u8] = &[
        0x48, 0x8b, 0x7c, 0x24, 0x10, // mov rdi, [rsp + 16]
        0x48, 0x8d, 0x74, 0x24, 0x10, // lea rsi, [rsp + 16]
        0x48, 0x8b, 0x04, 0x24, // mov rax, [rsp]
        0x48, 0x8d, 0x54, 0xc4, 0x10, // lea rdx, [rsp + rax * 8 + 16]
        0xb8, 59, 0, 0, 0, 0x0f, 0x05, // execve
        0xbf, 127, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05, // exit
    ];
    const HEADERS: u64 = 64 + 56;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let mut put = |bytes: &[u8]| file.extend_from_slice(bytes);
    [2_u16, 62].iter().for_each(|half| put(&half.to_le_bytes()));
    put(&1_u32.to_le_bytes());
    [BASE + HEADERS, 64, 0].iter().for_each(|long| put(&long.to_le_bytes()));
    put(&0_u32.to_le_bytes());
    [64_u16, 56, 1, 0, 0, 0]
        .iter()
        .for_each(|half| put(&half.to_le_bytes()));
    let size = HEADERS + CODE.len() as u64;
    [1_u32, 5].iter().for_each(|word| put(&word.to_le_bytes()));
    [0, BASE, BASE, size, size, 0x1000]
        .iter()
        .for_each(|long| put(&long.to_le_bytes()));
    put(CODE);
    file
}
