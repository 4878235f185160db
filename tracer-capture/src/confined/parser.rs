//! The parser: understands files that come from other users, and can do nothing else.

use std::{cell::Cell, io, sync::Arc};

use serde::{Deserialize, Serialize};
use tracer_common::api::Layer;
use tracer_core::code_object::{KernelResources, KernelSymbol, KernelsUnread};

use super::{
    channel::{Channel, MAX_INLINE, Message},
    sealed::Sealed,
};
use crate::runtime::{
    code_object::{self, Contents, Part},
    debug_files::{self, DebugSymbols, Source},
    elf_peek::{self, Peek},
    resolver::{
        self, Argument, Entries, FunctionSite, IoctlCall, MAX_FILE, Resolution, ResolveError,
        debug::{DebugFiles, DebugKey, Lookup, NotUsed, Tried},
    },
    unwind::{self, Module},
};

/// The work of a parser on the input that goes with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
pub enum Job {
    /// A first examination of a library.
    Peek,
    /// Finds the places for probes in a runtime. The input is a whole file; the parser asks for debug files.
    Resolve,
    /// Finds the functions of a layer. The input is a whole file.
    Entries {
        /// The layer, as an index in [`Layer::ALL`].
        layer: u8,
        /// The registers that must hold the functions' arguments at the probes.
        keep: Vec<Argument>,
    },
    /// Finds where a C library calls the kernel for an ioctl. The input is a whole file.
    IoctlCall,
    /// Reads the build-id. The input is a whole file.
    BuildId,
    /// Reads the names in a debug file.
    DebugSymbols,
    /// Computes the checksum by which `.gnu_debuglink` names a file. The input is a whole file.
    Checksum,
    /// Reads the kernels of a code object.
    CodeObject {
        /// The offset of the code object in the input.
        offset: u64,
        /// The size of the code object in bytes.
        size: u64,
    },
    /// Reads what it takes to unwind through a file.
    Unwind,
    /// Demangles symbols.
    Demangle(Vec<String>),
    /// Finds places for probes in functions.
    Sites {
        /// The first bytes and the linked address of each function.
        functions: Vec<(Vec<u8>, u64)>,
        /// The registers that must hold the functions' arguments at the probe.
        keep: Vec<Argument>,
    },
}

/// The result of a job: the variant of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[expect(missing_docs, reason = "the variants are those of the job")]
pub enum Output {
    Peek(Peek),
    Resolve(Box<Result<Resolution, ResolveError>>),
    Entries(Result<Entries, ResolveError>),
    IoctlCall(Result<Option<IoctlCall>, ResolveError>),
    BuildId(Option<String>),
    DebugSymbols(Result<DebugSymbols, String>),
    Checksum(u32),
    CodeObject(Result<Kernels, KernelsUnread>),
    Unwind(Box<Module>),
    Demangle(Vec<String>),
    Sites(Vec<Option<FunctionSite>>),
}

/// The contents of a code object, in the form that goes through a socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernels {
    target: Option<String>,
    version: Option<u32>,
    kernels: Vec<(u64, String, String, KernelResources)>,
}

impl From<Contents> for Kernels {
    fn from(contents: Contents) -> Self {
        let kernel = |kernel: &KernelSymbol| {
            let (symbol, name) = (kernel.symbol.to_string(), kernel.name.to_string());
            (kernel.offset, symbol, name, kernel.resources)
        };
        Self {
            target: contents.target,
            version: contents.version,
            kernels: contents.kernels.iter().map(kernel).collect(),
        }
    }
}

impl From<Kernels> for Contents {
    fn from(of: Kernels) -> Self {
        let kernel = |(offset, symbol, name, resources): (u64, String, String, KernelResources)| KernelSymbol {
            offset,
            symbol: Arc::from(symbol),
            name: Arc::from(name),
            resources,
        };
        Self {
            target: of.target,
            version: of.version,
            kernels: of.kernels.into_iter().map(kernel).collect(),
        }
    }
}

/// A message from a parser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FromParser {
    /// The parser needs bytes of its input.
    Bytes { offset: u64, len: u64 },
    /// The parser needs the debug file of a library.
    Debug(DebugKey),
    /// A piece of the output; the last piece completes the job.
    Output { piece: Vec<u8>, is_last: bool },
}

/// A message to a parser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ToParser {
    /// A job; a whole input is in the memory file beside the message.
    Job(Job),
    /// The requested bytes or debug file can't be provided.
    Nothing,
    /// The requested bytes or debug file, in the message.
    Inline(Vec<u8>),
    /// The requested bytes or debug file, in the memory file beside the message.
    Sealed,
}

/// Does jobs until the recorder has no more.
pub(super) fn serve(channel: &Channel) {
    while let Ok(message) = channel.receive() {
        let Ok(ToParser::Job(job)) = message.value() else {
            return;
        };
        let output = whole(message).and_then(|whole| run(channel, job, whole.as_ref()));
        if output.and_then(|output| send(channel, &output)).is_err() {
            return;
        }
    }
}

/// Sends an output in pieces: at least one, because no output is encoded in no bytes.
fn send(channel: &Channel, output: &Output) -> io::Result<()> {
    let bytes = postcard::to_stdvec(output).map_err(io::Error::other)?;
    let mut pieces = bytes.chunks(MAX_INLINE).peekable();
    while let Some(piece) = pieces.next() {
        let (piece, is_last) = (piece.to_vec(), pieces.peek().is_none());
        channel.send(&FromParser::Output { piece, is_last }, &[])?;
    }
    Ok(())
}

/// Takes the memory file beside a message.
fn whole(mut message: Message) -> io::Result<Option<Sealed>> {
    let file = message.descriptors.pop();
    file.map(|file| Sealed::take(file, MAX_FILE)).transpose()
}

fn run(channel: &Channel, job: Job, whole: Option<&Sealed>) -> io::Result<Output> {
    let whole = whole.map(Sealed::bytes);
    let bytes = whole.unwrap_or_default();
    let asked = Asked {
        channel,
        whole,
        broken: Cell::new(false),
    };
    let output = match job {
        Job::Peek => Output::Peek(elf_peek::peek(&asked)),
        Job::Resolve => Output::Resolve(Box::new(resolver::resolve_with(bytes, &mut &asked))),
        Job::Entries { layer, keep } => {
            let layer = Layer::ALL.get(usize::from(layer)).copied().unwrap_or(Layer::Hsa);
            Output::Entries(resolver::entries(bytes, layer, &keep))
        }
        Job::IoctlCall => Output::IoctlCall(resolver::ioctl_call(bytes)),
        Job::BuildId => Output::BuildId(resolver::build_id(bytes)),
        Job::DebugSymbols => Output::DebugSymbols(debug_files::read(&asked)),
        Job::Checksum => Output::Checksum(crc32fast::hash(bytes)),
        Job::CodeObject { offset, size } => {
            let contents = code_object::read_part(&asked, Part { offset, size });
            Output::CodeObject(contents.map(Kernels::from))
        }
        Job::Unwind => Output::Unwind(Box::new(unwind::read(&asked))),
        Job::Demangle(symbols) => {
            Output::Demangle(symbols.iter().map(|symbol| code_object::demangle(symbol)).collect())
        }
        Job::Sites { functions, keep } => {
            let site = |(code, vaddr): (Vec<u8>, u64)| resolver::site_in_function(&code, vaddr, &keep);
            Output::Sites(functions.into_iter().map(site).collect())
        }
    };
    if asked.broken.get() {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(output)
}

/// The input of a job: whole in memory, or requested piece by piece.
struct Asked<'a> {
    channel: &'a Channel,
    whole: Option<&'a [u8]>,
    /// Set when the recorder does not answer any more.
    broken: Cell<bool>,
}

impl Asked<'_> {
    fn ask(&self, said: &FromParser) -> Option<Vec<u8>> {
        let answered = || -> io::Result<Option<Vec<u8>>> {
            self.channel.send(said, &[])?;
            let mut message = self.channel.receive()?;
            match message.value()? {
                ToParser::Nothing => Ok(None),
                ToParser::Inline(bytes) => Ok(Some(bytes)),
                ToParser::Sealed => {
                    let file = message.descriptors.pop().ok_or(io::ErrorKind::InvalidData)?;
                    Ok(Some(Sealed::take(file, MAX_FILE)?.bytes().to_vec()))
                }
                ToParser::Job(_) => Err(io::ErrorKind::InvalidData.into()),
            }
        };
        answered().unwrap_or_else(|_| {
            self.broken.set(true);
            None
        })
    }
}

impl Source for Asked<'_> {
    fn bytes(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        if let Some(whole) = self.whole {
            return whole.bytes(offset, len);
        }
        if len == 0 {
            return Some(Vec::new());
        }
        let bytes = self.ask(&FromParser::Bytes { offset, len })?;
        (bytes.len() as u64 == len).then_some(bytes)
    }
}

impl DebugFiles for &Asked<'_> {
    fn find(&mut self, key: &DebugKey) -> Lookup {
        let answer = self.ask(&FromParser::Debug(key.clone()));
        let lookup = answer.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        lookup.unwrap_or_else(|| {
            let why_not = NotUsed::NotTried("nobody looked".to_owned());
            let place = "debug files".to_owned();
            Lookup {
                tried: vec![Tried { place, why_not }],
                found: None,
            }
        })
    }
}
