//! Examines what a process has mapped or loaded: readers fetch the bytes, parsers understand them.

mod debug;
mod remote;

use std::{
    io,
    os::{fd::AsFd, unix::ffi::OsStrExt},
    time::Instant,
};

use tracer_common::api::Layer;
use tracer_core::code_object::KernelsUnread;

pub use debug::Debug;
pub use remote::Remote;

use super::{
    answer::{Answer, Contents, File, ReadError},
    channel::MAX_INLINE,
    parser::{Job, Output},
    parsers::{Input, ParseFailed, Parsers},
    readers::Readers,
    request::{MAX_MAPPINGS, MAX_RANGES, Piece, ProcFile, Request, Want},
    sealed::Sealed,
    user::user_of,
};
use crate::{
    runtime::{
        code_object::{self, MAX_READ, Part, Place},
        debug_files::Network,
        elf_peek::Peek,
        resolver::{
            Argument, Entries, FunctionSite, IoctlCall, MAX_FILE, Resolution, ResolveError,
            debug::{DebugFiles, DebugKey, Lookup},
        },
        unwind::Module,
    },
    target::proc_maps::{self, Mapping},
};

/// The maximum size of a code object that is read whole. Of a larger code object the tables are read, one after the other.
const READ_WHOLE: u64 = 4 << 20;
/// The part of a file that is read when the file is opened: in a shared library, headers and names.
const START: Want = Want::Start(MAX_INLINE as u64);
/// The number of bytes of a function that suffice to find a place for a probe in it.
const CODE_LEN: u64 = 128;

/// The reason why nothing is known about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// The file was not read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file could not be parsed.
    #[error(transparent)]
    Parse(#[from] ParseFailed),
}

/// Examines one process until a deadline. Each method waits for its answer, but not beyond the deadline.
#[derive(Clone, Copy)]
pub struct Examine<'a> {
    readers: &'a Readers,
    parsers: &'a Parsers,
    /// The user of the process, to whom readers are charged.
    user: u32,
    pub(crate) pid: u32,
    pub(crate) deadline: Instant,
}

impl<'a> Examine<'a> {
    /// Prepares the examination of process `pid`.
    ///
    /// # Errors
    /// Fails with [`ReadError::Refused`] and ENOENT or ESRCH for a process that has exited.
    pub fn new(readers: &'a Readers, parsers: &'a Parsers, pid: u32, deadline: Instant) -> Result<Self, ReadError> {
        let user = user_of(pid).map_err(|e| ReadError::Refused(e.raw_os_error().unwrap_or(libc::EIO)))?;
        Ok(Self {
            readers,
            parsers,
            user,
            pid,
            deadline,
        })
    }

    fn ask(&self, request: &Request) -> Result<Answer, ReadError> {
        self.readers.request(self.user, request, self.deadline)
    }

    /// Asks for a file; `known` is the file that [`Request::Again`] refers to.
    fn file(&self, request: &Request, known: Option<&File>) -> Result<File, ReadError> {
        let known = known.map(File::as_fd);
        match self.readers.again(self.user, request, known, self.deadline)? {
            Answer::File(file) => Ok(file),
            _ => Err(ReadError::Gone),
        }
    }

    fn again(&self, file: &File, want: Want) -> Result<Contents, ReadError> {
        Ok(self.file(&Request::Again { want }, Some(file))?.contents)
    }

    fn bytes(&self, request: &Request) -> Result<Vec<u8>, ReadError> {
        match self.ask(request)? {
            Answer::Bytes(contents) => Ok(contents.bytes().to_vec()),
            _ => Err(ReadError::Gone),
        }
    }

    /// Returns the contents of a file in /proc/PID.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn proc_file(&self, file: ProcFile) -> Result<Vec<u8>, ReadError> {
        self.bytes(&Request::Proc { pid: self.pid, file })
    }

    /// Returns the threads of the process, and the system call that each of them is in, as `/proc/PID/task/TID/syscall` shows it.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn calls(&self) -> Result<Vec<(u32, String)>, ReadError> {
        match self.ask(&Request::Calls { pid: self.pid })? {
            Answer::Calls(calls) => Ok(calls),
            _ => Err(ReadError::Gone),
        }
    }

    /// Returns the start time of the process: seconds of the real-time clock, up to a second too early.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn began(&self) -> Result<Option<i64>, ReadError> {
        let stat = self.proc_file(ProcFile::Stat)?;
        Ok(code_object::began_in(&String::from_utf8_lossy(&stat)))
    }

    /// Returns the names in a folder, given by its path in the root of the process.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn names(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, ReadError> {
        let (pid, path) = (self.pid, path.to_vec());
        let names = self.bytes(&Request::List { pid, path })?;
        let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    /// Returns the memory of the process.
    #[must_use]
    pub fn memory(&self) -> Remote<'a> {
        Remote::new(*self)
    }

    /// Returns the search for debug files of a library that the process has mapped at `path`.
    #[must_use]
    pub fn debug_files(&self, path: &str, network: Network) -> Debug<'a> {
        Debug::new(*self, path, network)
    }

    /// Reads pieces of the memory of the process.
    fn pieces(&self, pieces: Vec<Piece>) -> Result<super::request::Memory, ReadError> {
        let pid = self.pid;
        match self.ask(&Request::Memory { pid, pieces })? {
            Answer::Memory(memory) => Ok(memory),
            _ => Err(ReadError::Gone),
        }
    }

    /// Reads one piece of the memory of the process; `None` if it is not there.
    fn piece(&self, address: u64, len: u32) -> Result<Option<Vec<u8>>, ReadError> {
        let memory = self.pieces(vec![Piece { address, len }])?;
        Ok((memory.there == [true]).then_some(memory.bytes))
    }
}

/// Files.
impl Examine<'_> {
    /// Returns the executable file mappings of the process, in address order.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn mappings(&self) -> Result<Vec<Mapping>, ReadError> {
        Ok(proc_maps::executable_in(&self.proc_file(ProcFile::Maps)?))
    }

    /// Returns the times of the last changes of the files behind mappings (s and ns of the real-time clock), each `None` if the
    /// mapping is gone or the recorder may not look behind it.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn changes(&self, mappings: &[&Mapping]) -> Result<Vec<Option<(i64, i64)>>, ReadError> {
        let mut changes = Vec::with_capacity(mappings.len());
        for some in mappings.chunks(MAX_MAPPINGS) {
            let mappings = some.iter().map(|mapping| (mapping.start, mapping.end)).collect();
            match self.ask(&Request::Changes {
                pid: self.pid,
                mappings,
            })? {
                Answer::Changes(some) => changes.extend(some),
                _ => return Err(ReadError::Gone),
            }
        }
        Ok(changes)
    }

    /// Finds the file behind a mapping.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn mapped(&self, mapping: &Mapping) -> Result<File, ReadError> {
        let request = Request::Mapped {
            pid: self.pid,
            start: mapping.start,
            end: mapping.end,
            device: mapping.file.device.clone(),
            inode: mapping.file.inode,
            path: mapping.path.clone().into_bytes(),
            want: START,
        };
        self.file(&request, None)
    }

    /// Finds a regular file by its path in the root of the process. No link leads out of that root.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn in_root(&self, path: &[u8]) -> Result<File, ReadError> {
        let (pid, path) = (self.pid, path.to_vec());
        let want = START;
        self.file(&Request::InRoot { pid, path, want }, None)
    }

    /// Finds a regular file by its path in the recorder's own root.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn own(&self, path: &std::path::Path) -> Result<File, ReadError> {
        let path = path.as_os_str().as_bytes().to_vec();
        let want = START;
        self.file(&Request::Own { path, want }, None)
    }

    /// Reads all bytes of a file that has at most `most` bytes.
    ///
    /// # Errors
    /// Fails with a [`ReadError`]; with [`ReadError::TooLarge`] for a larger file.
    pub fn whole(&self, file: &File, most: u64) -> Result<Sealed, ReadError> {
        let contents = self.again(file, Want::Whole(most))?;
        contents.sealed().map_err(|_| ReadError::Gone)
    }

    fn run(&self, job: &Job, whole: Option<&Sealed>, input: &mut impl Input) -> Result<Output, NotRead> {
        Ok(self.parsers.run(job, whole, input, self.deadline)?)
    }

    /// Runs a job on a file, whose bytes are fetched as the parser asks for them.
    fn run_on(&self, file: &File, job: &Job) -> Result<Output, NotRead> {
        let mut input = Bytes::of(*self, file);
        let output = self.run(job, None, &mut input)?;
        input.failed.map_or(Ok(output), |error| Err(error.into()))
    }

    /// Examines a file for the first time: reports whether the file is an HSA runtime, uses one, or is HIP.
    ///
    /// # Errors
    /// Fails with [`NotRead`].
    pub fn peek(&self, file: &File) -> Result<Peek, NotRead> {
        match self.run_on(file, &Job::Peek)? {
            Output::Peek(peek) => Ok(peek),
            _ => Err(ParseFailed::Crashed.into()),
        }
    }

    /// Reads the whole of a file that may be an HSA runtime or HIP's library.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn library(&self, file: &File) -> Result<Sealed, ReadError> {
        self.whole(file, MAX_FILE)
    }

    /// Finds the places for probes in a runtime; `debug` finds its debug file.
    ///
    /// # Errors
    /// Fails with [`NotRead`]. The inner result is the resolver's verdict about the file.
    pub fn resolve(
        &self,
        library: &Sealed,
        debug: &mut dyn DebugFiles,
    ) -> Result<Result<Resolution, ResolveError>, NotRead> {
        match self.run(&Job::Resolve, Some(library), &mut Finder(debug))? {
            Output::Resolve(resolution) => Ok(*resolution),
            _ => Err(ParseFailed::Crashed.into()),
        }
    }

    /// Finds the functions of a layer in a library, with places at which the registers in `keep` hold their arguments.
    ///
    /// # Errors
    /// Fails with [`NotRead`]. The inner result is the resolver's verdict about the file.
    pub fn entries(
        &self,
        library: &Sealed,
        layer: Layer,
        keep: &[Argument],
    ) -> Result<Result<Entries, ResolveError>, NotRead> {
        let (layer, keep) = (layer as u8, keep.to_vec());
        match self.run(&Job::Entries { layer, keep }, Some(library), &mut ())? {
            Output::Entries(entries) => Ok(entries),
            _ => Err(ParseFailed::Crashed.into()),
        }
    }

    /// Finds where a C library calls the kernel for an ioctl.
    ///
    /// # Errors
    /// Fails with [`NotRead`]. The inner result is the resolver's verdict about the file.
    pub fn ioctl_call(&self, library: &Sealed) -> Result<Result<Option<IoctlCall>, ResolveError>, NotRead> {
        match self.run(&Job::IoctlCall, Some(library), &mut ())? {
            Output::IoctlCall(call) => Ok(call),
            _ => Err(ParseFailed::Crashed.into()),
        }
    }

    /// Returns the build-id of a library.
    ///
    /// # Errors
    /// Fails with [`NotRead`].
    pub fn build_id(&self, library: &Sealed) -> Result<Option<String>, NotRead> {
        match self.run(&Job::BuildId, Some(library), &mut ())? {
            Output::BuildId(build_id) => Ok(build_id),
            _ => Err(ParseFailed::Crashed.into()),
        }
    }

    /// Reads what it takes to unwind through a file.
    ///
    /// # Errors
    /// Fails with [`NotRead`].
    pub fn unwind(&self, file: &File) -> Result<Module, NotRead> {
        match self.run_on(file, &Job::Unwind)? {
            Output::Unwind(module) => Ok(*module),
            _ => Err(ParseFailed::Crashed.into()),
        }
    }

    /// Demangles symbols, each to a name.
    ///
    /// # Errors
    /// Fails with [`NotRead`].
    pub fn demangle(&self, symbols: Vec<String>) -> Result<Vec<String>, NotRead> {
        match self.run(&Job::Demangle(symbols), None, &mut ())? {
            Output::Demangle(names) => Ok(names),
            _ => Err(ParseFailed::Crashed.into()),
        }
    }

    /// Returns whether a file belongs to the user of the process.
    #[must_use]
    pub fn owns(&self, file: &File) -> bool {
        file.info.owner == self.user
    }

    /// Finds the places for probes in functions of a library. Each function is given by its offset in the file and its linked
    /// address.
    ///
    /// # Errors
    /// Fails with [`NotRead`].
    pub fn sites(
        &self,
        file: &File,
        functions: &[(u64, u64)],
        keep: &[Argument],
    ) -> Result<Vec<Option<FunctionSite>>, NotRead> {
        // A function that a process has invented affects only its own result.
        let is_there = |(offset, _): &(u64, u64)| offset.checked_add(CODE_LEN).is_some_and(|end| end <= file.info.size);
        let there: Vec<(u64, u64)> = functions.iter().copied().filter(is_there).collect();
        let mut sites = Vec::with_capacity(there.len());
        for some in there.chunks(MAX_RANGES) {
            // The code is read from the file, because memory may show the breakpoints of other probes.
            let ranges = some.iter().map(|&(file_offset, _)| (file_offset, CODE_LEN)).collect();
            let code = self.again(file, Want::Ranges(ranges))?;
            let code = code.bytes().chunks(CODE_LEN as usize).map(<[u8]>::to_vec);
            let functions = code.zip(some).map(|(code, &(_, vaddr))| (code, vaddr)).collect();
            let keep = keep.to_vec();
            match self.run(&Job::Sites { functions, keep }, None, &mut ())? {
                Output::Sites(some) => sites.extend(some),
                _ => return Err(ParseFailed::Crashed.into()),
            }
        }
        let mut sites = sites.into_iter();
        let of_each = functions
            .iter()
            .map(|function| if is_there(function) { sites.next()? } else { None });
        Ok(of_each.collect())
    }

    /// Returns the kernels of a code object, given by its URI. Its file must not have changed since `unchanged_since` (seconds of
    /// the real-time clock).
    ///
    /// # Errors
    /// Fails with the reason why the kernels are not known. For a blocked read, or one that was not examined, this is
    /// [`KernelsUnread::Unreadable`].
    pub fn code_object(
        &self,
        uri: &[u8],
        unchanged_since: Option<i64>,
    ) -> Result<code_object::Contents, KernelsUnread> {
        match Place::parse(uri).ok_or(KernelsUnread::UnknownSource)? {
            Place::Memory(part) => self.kernels(part, &mut Pieces(*self), |part| {
                let bytes = self.piece(part.offset, u32::try_from(part.size).ok()?).ok()??;
                Sealed::copy_of(&bytes).ok()
            }),
            Place::File { path, part } => {
                let file = self.in_root(&path).map_err(|_| KernelsUnread::Unreadable)?;
                if unchanged_since.is_some_and(|time| file.info.changed.0 >= time) {
                    return Err(KernelsUnread::Changed);
                }
                let size = file.info.size;
                let part = part.unwrap_or(Part { offset: 0, size });
                self.kernels(part, &mut Bytes::of(*self, &file), |part| {
                    let ranges = vec![(part.offset, part.size)];
                    self.again(&file, Want::Ranges(ranges)).ok()?.sealed().ok()
                })
            }
        }
    }

    fn kernels(
        &self,
        part: Part,
        input: &mut impl Input,
        whole: impl FnOnce(Part) -> Option<Sealed>,
    ) -> Result<code_object::Contents, KernelsUnread> {
        let Part { offset, size } = part;
        let whole = (size <= READ_WHOLE).then(|| whole(part).ok_or(KernelsUnread::Unreadable));
        let whole = whole.transpose()?;
        let offset = if whole.is_some() { 0 } else { offset };
        match self.run(&Job::CodeObject { offset, size }, whole.as_ref(), input) {
            Ok(Output::CodeObject(kernels)) => kernels.map(code_object::Contents::from),
            Err(NotRead::Parse(ParseFailed::Crashed)) => Err(KernelsUnread::Malformed),
            _ => Err(KernelsUnread::Unreadable),
        }
    }
}

/// Bytes of a file, fetched as a parser asks for them.
struct Bytes<'a> {
    examine: Examine<'a>,
    file: &'a File,
    failed: Option<ReadError>,
}

impl<'a> Bytes<'a> {
    fn of(examine: Examine<'a>, file: &'a File) -> Self {
        Self {
            examine,
            file,
            failed: None,
        }
    }
}

impl Input for Bytes<'_> {
    fn bytes(&mut self, offset: u64, len: u64) -> Option<Vec<u8>> {
        if len > MAX_READ as u64 || self.failed.is_some() {
            return None;
        }
        let end = usize::try_from(offset.checked_add(len)?).ok()?;
        if let Some(bytes) = self.file.start().get(offset as usize..end) {
            return Some(bytes.to_vec());
        }
        match self.examine.again(self.file, Want::Ranges(vec![(offset, len)])) {
            Ok(contents) => Some(contents.bytes().to_vec()),
            // The file holds less than its own tables say.
            Err(ReadError::Refused(libc::ENODATA | libc::EINVAL)) => None,
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }
}

/// Bytes of memory, fetched as a parser asks for them.
struct Pieces<'a>(Examine<'a>);

impl Input for Pieces<'_> {
    fn bytes(&mut self, offset: u64, len: u64) -> Option<Vec<u8>> {
        let len = u32::try_from(len).ok().filter(|&len| len as usize <= MAX_READ)?;
        self.0.piece(offset, len).ok()?
    }
}

/// A search for debug files, made when a parser asks for it.
struct Finder<'a>(&'a mut dyn DebugFiles);

impl Input for Finder<'_> {
    fn debug_file(&mut self, key: &DebugKey) -> Option<Lookup> {
        Some(self.0.find(key))
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Refused(code) => Self::from_raw_os_error(code),
            other => Self::other(other),
        }
    }
}
