//! `tracer export`: writes a trace in the format of another tool.
//!
//! One thread reads the trace, with the rights of this process. Another one writes the export, with those of the invoking user.

mod about;
mod folder;
mod summary;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    process::ExitCode,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use anyhow::{Context, anyhow, bail};
use tempfile::TempDir;
use tracer_core::tables::{Fact, Table};
use tracer_export::{
    About, ExportError, Exporter, Window, Written, chrome::Chrome, folded::Folded, jsonl::Jsonl, perfetto::Perfetto,
    rocpd::Rocpd,
};
use tracer_store::Trace;

use crate::{
    cli::{Export, ExportFormat},
    record::output,
    window,
};

/// Rows that one thread hands to the other at a time.
const BATCH: usize = 1024;

/// Batches that may wait.
const WAITING: usize = 8;

/// What the reading thread sends: rows, and at last what it could not read.
enum Read {
    Rows(Vec<Fact>),
    End(Vec<String>),
}

/// What was written: the rows, and the bytes of the files.
struct Done {
    written: Written,
    bytes: u64,
}

/// Reads the trace and writes the export.
pub fn run(options: &Export) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    let window = window::of(trace.manifest(), options.from, options.to);
    if window.from_ns.zip(window.to_ns).is_some_and(|(from, to)| to <= from) {
        bail!("the window is empty: --to must be later than --from");
    }
    let about = about::of(&trace, window)?;
    if options.format == ExportFormat::Folded && trace.manifest().count(Table::Stacks).unwrap_or(0) == 0 {
        bail!("the trace has no stacks: record it with `tracer record --stacks`");
    }
    let (send, receive) = sync_channel(WAITING);
    let descriptions = !matches!(
        options.format,
        ExportFormat::Jsonl | ExportFormat::Csv | ExportFormat::Folded
    );
    let (read, written) = thread::scope(|scope| {
        let trace = &trace;
        // The writing thread waits until the reading one has ended, and dropped its end.
        let reader = scope.spawn(move || read(trace, window, descriptions, &send));
        let written = write(options, &about, receive);
        (reader.join(), written)
    });
    let damage = match read {
        Ok(read) => read?,
        Err(payload) => std::panic::resume_unwind(payload),
    };
    // A reader that closed the pipe early got what it wanted.
    let done = written?;
    for damage in damage {
        log::warn!("{damage}");
    }
    if let Some(sign) = &about.simulated {
        log::warn!("simulated: {sign}: nothing here is from a real GPU");
    }
    if let Some(done) = done {
        summary::say(options, &about, &done);
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the rows of the window, and those that describe what they name. Returns what cannot be read.
fn read(trace: &Trace, window: Window, descriptions: bool, send: &SyncSender<Read>) -> anyhow::Result<Vec<String>> {
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    let mut batch = Vec::with_capacity(BATCH);
    for fact in &mut facts {
        let fact = fact?;
        let table = Table::of(&fact);
        let time_ns = fact.time_ns();
        if window.is_over(time_ns) {
            break;
        }
        if window.has(time_ns) || descriptions && tracer_export::describes(table) {
            batch.push(fact);
        }
        if batch.len() == BATCH {
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
            // The writing thread has failed, and reports that itself.
            if send.send(Read::Rows(full)).is_err() {
                return Ok(Vec::new());
            }
        }
    }
    let damage: Vec<String> = facts.damaged().iter().map(ToString::to_string).collect();
    let _ = send.send(Read::Rows(batch));
    let _ = send.send(Read::End(damage.clone()));
    Ok(damage)
}

/// Passes rows to an exporter until the last one.
fn pass(receive: Receiver<Read>, mut exporter: Box<dyn Exporter + '_>) -> anyhow::Result<Written> {
    for read in receive {
        match read {
            Read::Rows(rows) => rows.into_iter().try_for_each(|fact| exporter.fact(fact))?,
            Read::End(damage) => return Ok(exporter.finish(&damage)?),
        }
    }
    // The reading thread has failed, and reports that itself.
    bail!("the trace could not be read to its end")
}

/// Writes the export. Returns nothing if standard output was closed early.
fn write(options: &Export, about: &About, receive: Receiver<Read>) -> anyhow::Result<Option<Done>> {
    let name = options.output.display();
    if options.output == Path::new("-") {
        return to_stdout(options.format, about, receive);
    }
    let owner = output::owner(false)?;
    let done = if options.format == ExportFormat::Csv {
        folder::write(&owner, &options.output, options.mode, about, receive)
    } else {
        let fill = |file: &mut File| -> Result<Done, Failed> {
            let written = match options.format {
                ExportFormat::Rocpd => database(about, receive, file)?,
                format => pass(
                    receive,
                    exporter(format, about, BufWriter::with_capacity(1 << 20, &mut *file))?,
                )?,
            };
            let bytes = file.metadata()?.len();
            Ok(Done { written, bytes })
        };
        tracer_files::fill(&owner, &options.output, options.mode, fill).map_err(|Failed(error)| error)
    };
    done.map(Some)
        .with_context(|| format!("cannot write the export to {name}"))
}

/// An error that comes from the exporter or from the file.
struct Failed(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// Returns the exporter of a format that is a stream.
fn exporter<'a>(format: ExportFormat, about: &About, out: impl Write + 'a) -> anyhow::Result<Box<dyn Exporter + 'a>> {
    Ok(match format {
        ExportFormat::Perfetto => Box::new(Perfetto::exporter(out, about)?),
        ExportFormat::Chrome => Box::new(Chrome::exporter(out, about)?),
        ExportFormat::Jsonl => Box::new(Jsonl::new(out, about)?),
        ExportFormat::Folded => Box::new(Folded::new(out)),
        ExportFormat::Csv | ExportFormat::Rocpd => bail!("this format is no stream"),
    })
}

/// Writes a database to a file.
///
/// SQLite opens files by their paths, and follows links. So it gets a path in a folder that no other user can enter. The name is
/// removed at once, so that nothing stays there, and the content is copied when it is whole.
fn database(about: &About, receive: Receiver<Read>, file: &mut File) -> anyhow::Result<Written> {
    let private = TempDir::with_prefix("tracer-export-").context("creating a folder for the database")?;
    let path = private.path().join("rocpd.db");
    let exporter = Rocpd::new(&path, about)?;
    let mut whole = File::open(&path)?;
    private.close()?;
    let written = pass(receive, Box::new(exporter))?;
    io::copy(&mut whole, file)?;
    Ok(written)
}

fn to_stdout(format: ExportFormat, about: &About, receive: Receiver<Read>) -> anyhow::Result<Option<Done>> {
    if !matches!(
        format,
        ExportFormat::Jsonl | ExportFormat::Chrome | ExportFormat::Folded
    ) {
        return Err(anyhow!(
            "only chrome, folded and jsonl can go to standard output; name the output with -o FILE"
        ));
    }
    let mut out = Counted {
        out: BufWriter::new(io::stdout().lock()),
        bytes: 0,
    };
    let written = exporter(format, about, &mut out).and_then(|exporter| pass(receive, exporter));
    match written {
        Ok(written) => Ok(Some(Done {
            written,
            bytes: out.bytes,
        })),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error).context("cannot write the export to standard output"),
    }
}

/// Returns whether the reader of a pipe closed it.
fn is_gone(error: &anyhow::Error) -> bool {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    match error.downcast_ref::<ExportError>() {
        Some(ExportError::Write(error)) => gone(error),
        Some(_) => false,
        None => error.downcast_ref::<io::Error>().is_some_and(gone),
    }
}

/// Counts the bytes that are written.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
