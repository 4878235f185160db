//! `tracer import`: makes a trace of what another tool wrote.

mod found;
mod lines;

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tracer_core::{
    event::{Event, Lost},
    foreign, losses,
    model::Model,
    summary::{Report, Summary},
    tables::Fact,
    units,
};
use tracer_import::{Found, Importer, TRACE_DAT, TraceDat};
use tracer_store::{Placing, TraceWriter, Written, manifest::Target};

use self::lines::Lines;
use crate::{
    cli::Import,
    record::{manifest, output},
    report::{self, layout::Layout},
    say::{self, say},
};

/// Lines between two looks at what waits for the disk.
const BATCH: u64 = 4096;

/// Bytes of rows that may wait for the disk. An import waits for it, and so combines no rows.
const MAX_PENDING: usize = 32 << 20;

/// Time between two looks while too much waits.
const NAP: Duration = Duration::from_millis(1);

/// Buffer of the file, in bytes.
const BUFFER: usize = 256 << 10;

/// Reads the text, writes the trace, and prints a summary.
pub fn run(options: &Import) -> anyhow::Result<ExitCode> {
    let name = foreign::line(options.file.display());
    let mut input = Input::open(&options.file).with_context(|| format!("cannot read {name}"))?;
    let file = options.file.as_os_str();
    let dir = output::directory(options.output.as_deref(), file, std::process::id(), false);
    let placing = Placing {
        owner: output::owner(false)?,
        mode: options.mode,
        overwrite: options.overwrite,
        ..Placing::default()
    };
    let from = options.file.display().to_string();
    let mut begun = manifest::begin(Target::Imported { from });
    found::forget_machine(&mut begun);
    let mut import = Importing {
        writer: TraceWriter::create_as(&dir, begun, placing)?,
        summary: Summary::new(Default::default()),
        model: Model::new(),
    };
    let read = import.read(&mut input).with_context(|| format!("cannot read {name}"));
    let found = match read {
        Ok(found) if found.events > 0 => found,
        other => {
            // A trace without content would block the next attempt.
            import.writer.discard()?;
            bail!(other.map_or_else(|error| error, |found| found::nothing(&name, &found)));
        }
    };
    let (report, written) = import.finish(&found)?;
    print(&found, &report, &written)?;
    Ok(ExitCode::SUCCESS)
}

/// What is read.
enum Input {
    Lines(Lines<BufReader<Box<dyn Read>>>),
    TraceDat(Box<TraceDat<BufReader<File>>>),
}

impl Input {
    /// Opens the file, or standard input.
    fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Self::lines(Box::new(io::stdin()));
        }
        let mut file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            bail!("it is a folder: give the file with the text in it; `tracer report` reads traces of tracer itself");
        }
        if !about.is_file() {
            return Self::lines(Box::new(file));
        }
        let mut start = Vec::new();
        (&file).take(TRACE_DAT.len() as u64).read_to_end(&mut start)?;
        file.rewind()?;
        if start != TRACE_DAT {
            return Self::lines(Box::new(file));
        }
        let dat = TraceDat::open(BufReader::with_capacity(BUFFER, file))?;
        Ok(Self::TraceDat(Box::new(dat)))
    }

    fn lines(file: Box<dyn Read>) -> anyhow::Result<Self> {
        let mut lines = Lines::new(BufReader::with_capacity(BUFFER, file));
        match lines.unfit()? {
            Some(advice) => bail!("it is no text: {advice}"),
            None => Ok(Self::Lines(lines)),
        }
    }

    /// Takes the next line or record. Returns `false` at the end.
    fn take(&mut self, importer: &mut Importer, mut out: impl FnMut(&Event<'_>)) -> io::Result<bool> {
        match self {
            Self::Lines(lines) => match lines.next()? {
                Some(line) => importer.line(line, &mut out),
                None => return Ok(false),
            },
            Self::TraceDat(dat) => return Ok(importer.record(dat, &mut out)),
        }
        Ok(true)
    }
}

/// A trace that is being made.
struct Importing {
    writer: TraceWriter,
    summary: Summary,
    model: Model,
}

impl Importing {
    /// Takes every line or record.
    fn read(&mut self, input: &mut Input) -> anyhow::Result<Found> {
        let mut importer = Importer::new();
        let mut taken = 0_u64;
        while input.take(&mut importer, |event| self.conclude(event))? {
            taken += 1;
            if taken.is_multiple_of(BATCH) {
                self.writer.tick(Instant::now())?;
                while self.writer.pending_bytes() > MAX_PENDING {
                    thread::sleep(NAP);
                }
            }
        }
        Ok(importer.finish(&mut |event| self.conclude(event)))
    }

    /// Takes what the model concludes from an event.
    fn conclude(&mut self, event: &Event<'_>) {
        let Self { writer, summary, model } = self;
        model.apply(event, &mut |fact| take(writer, summary, &fact));
    }

    /// Closes the trace.
    fn finish(mut self, found: &Found) -> anyhow::Result<(Report, Written)> {
        let (_, last_ns) = found.span_ns.unwrap_or_default();
        let lost = [
            (losses::IMPORT_LOST, found.lost),
            (losses::UNDECODED, found.malformed_total),
        ];
        for (source, count) in lost {
            if count > 0 {
                self.conclude(&Event::Lost(Lost {
                    time_ns: last_ns,
                    source,
                    count,
                }));
            }
        }
        let Self {
            mut writer,
            mut summary,
            mut model,
        } = self;
        model.finish(last_ns, &mut |fact| take(&mut writer, &mut summary, &fact));
        let written = writer.finish(|manifest| found::describe(manifest, found));
        let written = written.context("writing the trace")?;
        let watched = manifest::parse(&written.manifest.capabilities);
        let report = summary.with_capabilities(watched).finish(written.manifest.complete);
        Ok((report, written))
    }
}

fn take(writer: &mut TraceWriter, summary: &mut Summary, fact: &Fact) {
    summary.add(fact);
    writer.push_last(fact);
}

/// Prints what was read and what it shows.
fn print(found: &Found, report: &Report, written: &Written) -> anyhow::Result<()> {
    for warning in &written.manifest.warnings {
        log::warn!("{warning}");
    }
    let mut text = Vec::new();
    let layout = Layout::of(&io::stderr());
    report::text::summary(&mut text, &written.manifest, report, &[], layout)?;
    say::words(&String::from_utf8_lossy(&text));
    say!("imported   {}", found::counts(found));
    let dir = foreign::line(written.dir.display());
    let size = units::bytes(written.bytes);
    say!("trace      {dir} ({size}); read it with `tracer report {dir}`");
    Ok(())
}
