//! The recorder's parsers. Each parser works on one file at a time, and a parser that fails affects only that file.

use std::{
    io,
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tracer_core::words::Named;

use super::{
    channel::{MAX_INLINE, decode},
    parser::{FromParser, Job, Output, ToParser},
    readers::Readers,
    sealed::Sealed,
    spawner::{Child, Kind},
};
use crate::runtime::resolver::debug::{DebugKey, Lookup};

/// The maximum size of an output in bytes: the names of the most kernels that are kept of a code object.
const MAX_OUTPUT: usize = 128 << 20;
/// The maximum number of times that a job may ask: a code object without metadata asks once per kernel.
const MAX_ASKED: usize = 1 << 18;
/// The maximum number of parsers that wait for work.
const MAX_IDLE: usize = 2;
/// The work after which a parser is not used again, because its processor time is limited over its whole life.
const MAX_WORK: Duration = Duration::from_secs(2);

/// The reason why a file could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseFailed {
    /// The deadline passed first.
    #[error("parsing took too long")]
    Late,
    /// The parser did something forbidden, used up its memory or time, or crashed.
    #[error("the parser failed")]
    Crashed,
    /// No process could be created for the parser.
    #[error("cannot create a parser process")]
    None,
}

/// The source of what a parser asks for while it works. By default there is nothing.
pub trait Input {
    /// Returns `len` bytes of the input at `offset`; `None` if they can't be provided.
    fn bytes(&mut self, _offset: u64, _len: u64) -> Option<Vec<u8>> {
        None
    }

    /// Returns the debug file of a library.
    fn debug_file(&mut self, _key: &DebugKey) -> Option<Lookup> {
        None
    }
}

/// The input of a job that asks for nothing, because the whole input goes with the job.
impl Input for () {}

/// The parsers of a recorder. Clones share the same parsers.
#[derive(Clone)]
pub struct Parsers {
    readers: Readers,
    idle: Arc<Mutex<Vec<Worker>>>,
}

struct Worker {
    child: Child,
    worked: Duration,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill();
    }
}

impl Parsers {
    /// Creates the set of parsers. The spawner of the readers forks them, too.
    #[must_use]
    pub fn new(readers: &Readers) -> Self {
        Self {
            readers: readers.clone(),
            idle: Arc::default(),
        }
    }

    /// Returns the process ids of the parsers that wait for work.
    #[must_use]
    pub fn idle_pids(&self) -> Vec<u32> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.iter().map(|worker| worker.child.pid).collect()
    }

    /// Does a job, on `whole` or on what `input` provides, until `deadline`. The output is of the job's own variant.
    ///
    /// # Errors
    /// Fails with [`ParseFailed`]. Other files can still be parsed.
    pub fn run(
        &self,
        job: &Job,
        whole: Option<&Sealed>,
        input: &mut impl Input,
        deadline: Instant,
    ) -> Result<Output, ParseFailed> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = match idle.filter(|worker| !worker.child.has_ended()) {
            Some(worker) => worker,
            None => Worker {
                child: self.readers.spawn(Kind::Parser).map_err(|_| ParseFailed::None)?,
                worked: Duration::ZERO,
            },
        };
        let began = Instant::now();
        let output = converse(&worker.child, job, whole, input, deadline).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => ParseFailed::Late,
            _ => ParseFailed::Crashed,
        })?;
        // A parser whose answer does not fit the job is not used again.
        if !fits(job, &output) {
            return Err(ParseFailed::Crashed);
        }
        worker.worked += began.elapsed();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.worked < MAX_WORK && idle.len() < MAX_IDLE {
            idle.push(worker);
        }
        Ok(output)
    }
}

/// Returns whether an output is of the variant with the name of its job, and has a site for each function.
fn fits(job: &Job, output: &Output) -> bool {
    match (job, output) {
        (Job::Sites { functions, .. }, Output::Sites(sites)) => functions.len() == sites.len(),
        (Job::Demangle(symbols), Output::Demangle(names)) => symbols.len() == names.len(),
        _ => job.name() == output.name(),
    }
}

fn converse(
    child: &Child,
    job: &Job,
    whole: Option<&Sealed>,
    input: &mut impl Input,
    deadline: Instant,
) -> io::Result<Output> {
    let channel = &child.channel;
    let beside = whole.map(AsFd::as_fd);
    channel.send_until(&ToParser::Job(job.clone()), beside.as_slice(), deadline)?;
    let (mut output, mut asked) = (Vec::new(), 0);
    loop {
        let answer = match channel.receive_until(deadline)?.value()? {
            FromParser::Output { piece, is_last } => {
                output.extend(piece);
                if output.len() > MAX_OUTPUT {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                if is_last {
                    return decode(&output);
                }
                continue;
            }
            FromParser::Bytes { offset, len } => input.bytes(offset, len),
            FromParser::Debug(key) => input
                .debug_file(&key)
                .and_then(|lookup| postcard::to_stdvec(&lookup).ok()),
        };
        // A parser that the scheduler preferred may answer at once. Its output would still come after the deadline.
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        asked += 1;
        if asked > MAX_ASKED {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (message, file) = match answer {
            None => (ToParser::Nothing, None),
            Some(bytes) if bytes.len() <= MAX_INLINE => (ToParser::Inline(bytes), None),
            Some(bytes) => (ToParser::Sealed, Some(Sealed::copy_of(&bytes)?)),
        };
        let beside = file.as_ref().map(AsFd::as_fd);
        channel.send_until(&message, beside.as_slice(), deadline)?;
    }
}
