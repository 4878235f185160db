//! The report as one page of HTML.

use std::io::{self, Write};

use tracer_core::{
    plots::{Figures, Plots},
    tables::Fact,
};
use tracer_html::{Block, Page, Section};
use tracer_store::Manifest;

use super::{
    Counted,
    layout::Layout,
    selection::Selection,
    text::{self, By, How, Read},
};
use crate::{cli::Report, record::manifest};

/// Most rows of a table in a page, unless the user asks for all.
const MOST_ROWS: usize = 500;

/// The tables of a page, with their places and headings.
const TABLES: [(By, &str, &str); 14] = [
    (By::Kernel, "kernels", "Kernels"),
    (By::Layer, "layer-table", "Layers in numbers"),
    (By::Step, "steps", "Steps of a launch"),
    (By::Phase, "phases", "Phases"),
    (By::Api, "api", "API calls"),
    (By::Nesting, "nesting", "Calls inside calls"),
    (By::Queue, "queues", "Queues"),
    (By::Stream, "streams", "Streams"),
    (By::Copy, "copies", "Copies"),
    (By::Ioctl, "ioctls", "Ioctls"),
    (By::Ring, "rings", "Rings"),
    (By::Driver, "driver", "Kernel driver"),
    (By::Process, "processes", "Processes"),
    (By::Gpu, "gpus", "GPUs"),
];

/// Collects the plots of the page.
pub struct Plotted {
    plots: Plots,
    is_of_kernels: bool,
}

impl Plotted {
    /// Returns empty plots of the recording, or of a part of it.
    pub fn new(manifest: &Manifest, selection: Option<&Selection>) -> Self {
        let window = selection.map(Selection::window).unwrap_or_default();
        let ended = manifest.ended.as_ref().map(|ended| ended.monotonic_ns);
        let ends = ended.into_iter().chain(window.to_ns);
        Self {
            plots: Plots::new(window.from_ns.unwrap_or(manifest.started.monotonic_ns), ends.min()),
            is_of_kernels: selection.is_some_and(Selection::is_of_kernels),
        }
    }

    /// Adds a row of the part.
    pub fn add(&mut self, fact: &Fact, launch_ns: Option<u64>) {
        let is_of_kernel = matches!(
            fact,
            Fact::Dispatch(_) | Fact::DispatchRun(_) | Fact::GpuTime(_) | Fact::Loss(_)
        );
        if is_of_kernel || !self.is_of_kernels {
            self.plots.add(fact, launch_ns);
        }
    }

    /// Returns what there is to draw.
    pub fn finish(self) -> Figures {
        self.plots.finish()
    }
}

/// Returns the layout of a page.
pub fn layout(layout: Layout, all: bool) -> Layout {
    layout.blocks().with_rows(if all { usize::MAX } else { MOST_ROWS })
}

/// Writes the page.
pub fn write(
    out: &mut impl Write,
    options: &Report,
    counted: &Counted,
    figures: &Figures,
    how: &How,
) -> anyhow::Result<()> {
    let manifest = counted.trace.manifest();
    let selection = counted.selection.as_ref();
    let read = Read {
        report: &counted.report,
        answers: &counted.answers,
        runs: &counted.runs,
    };
    let headline = blocks(|out| {
        text::summary(out, manifest, &counted.report, &counted.damage, how.layout)?;
        text::in_flight::lines(out, &counted.answers, how.layout)
    })?;
    let has = |by: By| selection.is_none_or(|part| part.tables().contains(&by));
    let table = |by: By| match has(by) {
        true => blocks(|out| text::by_one(out, &read, how, by)),
        false => Ok(Vec::new()),
    };
    let mut tables = Vec::new();
    for (by, id, title) in TABLES {
        let blocks = table(by)?;
        tables.push(Section { id, title, blocks });
    }
    let (title, part) = (manifest::subject(&manifest.target), selection.map(Selection::text));
    let page = Page {
        title: &title,
        simulated: manifest.simulated.as_deref(),
        part: part.as_deref(),
        is_of_kernels: selection.is_some_and(Selection::is_of_kernels),
        headline,
        findings: table(By::Finding)?,
        tables,
        visible: if options.all { usize::MAX } else { options.top },
        report: &counted.report,
        answers: &counted.answers,
        figures,
        watched: manifest::parse(&manifest.capabilities),
        started_ns: manifest.started.monotonic_ns,
        tool: concat!("tracer ", env!("CARGO_PKG_VERSION")),
    };
    Ok(page.write(out)?)
}

/// Returns what a writer of the text report writes, as blocks.
fn blocks(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> anyhow::Result<Vec<Block>> {
    let mut output = Vec::new();
    write(&mut output)?;
    Ok(Block::read(&output)?)
}
