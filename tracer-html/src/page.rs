//! The page: the headline, findings, plots, and tables.

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use tracer_core::{
    analysis::Answers,
    plots::Figures,
    summary::{Capabilities, Report},
    units::count,
};

use crate::block::{Block, elements};
use crate::{depth, latency, layers, policy, shares, timeline};

/// What the page shows.
#[derive(Debug)]
pub struct Page<'a> {
    /// What was traced.
    pub title: &'a str,
    /// Why the GPU is known to be simulated. `None` does not claim that it is not.
    pub simulated: Option<&'a str>,
    /// The part of the recording that the plots and some tables are about, in words; `None`: the whole.
    pub part: Option<&'a str>,
    /// Whether the part is of some kernels: then there are no plots of what is not a kernel's.
    pub is_of_kernels: bool,
    /// The lines of the text report's headline.
    pub headline: Vec<Block>,
    /// The findings.
    pub findings: Vec<Block>,
    /// The tables.
    pub tables: Vec<Section>,
    /// Rows of a table that are visible at once.
    pub visible: usize,
    /// The counts, always of the whole recording.
    pub report: &'a Report,
    /// The rows by kernel and layer.
    pub answers: &'a Answers,
    /// What the plots show.
    pub figures: &'a Figures,
    /// What was watched.
    pub watched: Capabilities,
    /// The start of the recording, CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    /// The tool that wrote the page, with its version.
    pub tool: &'a str,
}

/// Tables with a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name of its place in the page.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its tables and notes; without any, the page does not have the section.
    pub blocks: Vec<Block>,
}

impl Page<'_> {
    /// Writes the page.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.document().0.as_bytes())
    }

    fn document(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy::policy());
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="referrer" content="no-referrer";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " - tracer" }
                    style { (PreEscaped(policy::STYLE)) }
                }
                body {
                    (self.header())
                    main {
                        section #recording { h2 { "Recording" } (elements(&self.headline, usize::MAX)) (self.not_watched()) }
                        @if !self.findings.is_empty() {
                            section #findings { h2 { "Findings" } (elements(&self.findings, usize::MAX)) }
                        }
                        (self.plots())
                        @for section in self.tables.iter().filter(|section| !section.blocks.is_empty()) {
                            section id=(section.id) { h2 { (section.title) } (elements(&section.blocks, self.visible)) }
                        }
                    }
                    footer {
                        "Written by " (self.tool) ". A dash or a question mark is unknown, not 0. Times are since the start of the recording. "
                        "This page is one file: it loads nothing and sends nothing."
                    }
                    p #under hidden {}
                    script { (PreEscaped(policy::SCRIPT)) }
                }
            }
        }
    }

    fn header(&self) -> Markup {
        let links = [
            (!self.findings.is_empty(), "findings", "Findings"),
            (true, "timeline", "Timeline"),
            (true, "paths", "Paths"),
            (true, "latency", "Latency"),
            (!self.is_of_kernels, "depth", "Depth"),
            (!self.is_of_kernels, "layers", "Layers"),
        ];
        let plots = links
            .into_iter()
            .filter(|(is_there, ..)| *is_there)
            .map(|(_, id, title)| (id, title));
        let tables = self.tables.iter().filter(|section| !section.blocks.is_empty());
        let links = plots.chain(tables.map(|section| (section.id, section.title)));
        html! {
            header {
                p .tool { "tracer report" }
                h1 { (self.title) }
                @if let Some(sign) = self.simulated {
                    p #simulated role="note" { b { "SIMULATED GPU" } " " (sign) ": no number here is from a real GPU." }
                }
                @if let Some(part) = self.part {
                    p #part role="note" {
                        b { "Part of the recording" } " " (part) ". The plots and the tables are of this part. The totals, and the lines \
                        below, are of the whole recording."
                    }
                }
                (self.totals())
                nav aria-label="Sections" { @for (id, title) in links { a href={ "#" (id) } { (title) } " " } }
            }
        }
    }

    /// Returns the numbers that matter most.
    fn totals(&self) -> Markup {
        let report = self.report;
        let number = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), tracer_core::units::count);
        let kernels = &report.dispatches;
        let by_doorbell = kernels
            .by_path
            .doorbell
            .zip(kernels.total)
            .and_then(|(doorbell, total)| tracer_core::units::share(doorbell, total));
        let share = by_doorbell.unwrap_or_else(|| "?".to_owned());
        let lost = report.losses.total;
        html! {
            div .totals {
                div data-total="dispatches" { b { (number(kernels.total)) } "kernels dispatched" }
                div data-total="by-doorbell" { b { (share) } "of them by doorbell" }
                div data-total="copies" { b { (number(report.copies.total)) } "SDMA submissions" }
                div data-total="ring-jobs" {
                    b { (number(report.ring_jobs.total)) }
                    @if report.ring_jobs.total.is_none() { "jobs on rings: not watched" } @else { "jobs on rings" }
                }
                div data-total="losses" class=[(lost != Some(0)).then_some("warn")] { b { (lost.map_or_else(|| "?".to_owned(), count)) } "events lost" }
                div data-total="complete" class=[(!report.complete).then_some("warn")] {
                    b { @if report.complete { "yes" } @else { "no" } } "complete"
                }
            }
        }
    }

    fn not_watched(&self) -> Markup {
        let not = self.watched.each().into_iter().filter(|(_, watched)| !watched);
        let names: Vec<String> = not.map(|(name, _)| name.replace('_', " ")).collect();
        html! {
            @if !names.is_empty() {
                p .note #not-watched { "Not watched, so unknown here: " (names.join(", ")) "." }
            }
        }
    }

    fn plots(&self) -> Markup {
        let (figures, report) = (self.figures, self.report);
        html! {
            (timeline::section(figures, report, self.started_ns, self.watched.kernel_rings && !self.is_of_kernels))
            (shares::section(figures, report, &self.watched, self.is_of_kernels))
            (latency::section(figures, &self.watched, self.is_of_kernels))
            @if self.is_of_kernels {
                p .why {
                    "Copies, doorbells, depths, rings and layers are not of single kernels, so this page does not have them. \
                     Leave out --kernel to see them."
                }
            } @else {
                (depth::section(figures, report, self.started_ns))
                (layers::section(self.answers, self.watched.api))
            }
        }
    }
}

#[cfg(test)]
mod tests;
