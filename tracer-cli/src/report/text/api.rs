//! Calls of HIP, HSA and OpenCL functions, time by layer, and the queues of streams.

use std::io::{self, Write};

use tracer_core::{analysis::Answers, foreign::Terminal, summary::Report, units::duration};

use super::super::layout::{Layout, Table, name, number, text};
use super::{dash, in_flight, percent};
use crate::units::known;

/// Writes the time by layer: what threads did on their way to the GPU.
pub fn layers(out: &mut impl Write, answers: &Answers, wall_ns: Option<u64>, layout: Layout) -> io::Result<()> {
    let columns = [
        name("TIME BY LAYER"),
        number("CALLS"),
        number("OWN TIME"),
        number("SHARE"),
        number("WALL").spare(3),
        number("P50").spare(1),
        number("P99").spare(1),
        number("MAX").spare(2),
    ];
    let total = answers
        .layers
        .iter()
        .map(|layer| layer.own_ns)
        .fold(0, u64::saturating_add);
    let mut table = Table::new(&columns);
    for layer in &answers.layers {
        let time = |of: fn(tracer_core::tally::Stats) -> u64| layer.ns.map_or_else(dash, |ns| duration(of(ns)));
        table.row(vec![
            Terminal(&layer.title()).to_string(),
            layer.calls.to_string(),
            duration(layer.own_ns),
            percent(layer.own_ns, total),
            wall_ns.map_or_else(dash, |wall| percent(layer.own_ns, wall)),
            time(|ns| ns.p50),
            time(|ns| ns.p99),
            time(|ns| ns.max),
        ]);
    }
    let is_empty = answers.layers.is_empty();
    table.write(out, layout)?;
    if !is_empty {
        let text = "OWN TIME is without recorded calls and ioctls inside, summed over threads, probes included. SHARE is of \
                    that sum, WALL of the recording.";
        layout.note(out, text)?;
    }
    Ok(())
}

/// Writes the calls by function.
pub fn calls(out: &mut impl Write, answers: &Answers, layout: Layout) -> io::Result<()> {
    let columns = [
        name("API CALLS"),
        number("CALLS"),
        number("ERRORS").spare(1),
        number("TOTAL"),
        number("SHARE").spare(2),
        number("MEAN").spare(3),
        number("P50").spare(4),
        number("P99").spare(4),
        number("MAX").spare(5),
        number("NO RETURN").spare(6),
        text("LAYER").spare(7),
        text("CLASS").spare(8),
    ];
    let functions = &answers.functions;
    let own = functions.iter().filter_map(|function| function.own_ns);
    let own = own.fold(0, u64::saturating_add);
    let mut table = Table::new(&columns);
    for function in functions {
        let ns = function.ns;
        let returned = function.calls.saturating_sub(function.unreturned).max(1);
        table.row(vec![
            Terminal(&function.function).to_string(),
            function.calls.to_string(),
            function.errors.to_string(),
            ns.map_or_else(dash, |ns| duration(ns.total)),
            function.own_ns.map_or_else(dash, |ns| percent(ns, own)),
            ns.map_or_else(dash, |ns| duration(ns.total / returned)),
            ns.map_or_else(dash, |ns| duration(ns.p50)),
            ns.map_or_else(dash, |ns| duration(ns.p99)),
            ns.map_or_else(dash, |ns| duration(ns.max)),
            function.unreturned.to_string(),
            Terminal(&function.layer).to_string(),
            function.class.unwrap_or("unknown").to_owned(),
        ]);
    }
    let counted = functions
        .iter()
        .any(|function| function.own_ns.is_none() && function.ns.is_some());
    let is_empty = functions.is_empty();
    table.write(out, layout)?;
    if !is_empty {
        let mut text = "SHARE is of the time without recorded calls and ioctls inside.".to_owned();
        if counted {
            text += " Functions without a share were only counted: their time is in the calls around them, too.";
        }
        layout.note(out, &text)?;
    }
    Ok(())
}

/// Writes the queues on which the work of streams was seen.
pub fn streams(out: &mut impl Write, report: &Report, answers: &Answers, layout: Layout) -> io::Result<()> {
    let columns = [
        name("STREAMS"),
        number("PID").spare(2),
        number("QUEUE"),
        number("KFD ID").spare(3),
        number("DISPATCHES AND COPIES"),
        number("IN FLIGHT").spare(1),
    ];
    let mut streams: Vec<_> = report.streams.iter().collect();
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.submissions));
    let mut table = Table::new(&columns);
    for stream in streams {
        let found = report.queues.iter().find(|queue| queue.queue == stream.queue);
        let held = answers.in_flight.as_ref().and_then(|times| {
            let mut rows = times.streams.iter();
            let row = rows.find(|row| (row.queue, row.stream) == (stream.queue, stream.stream))?;
            Some(in_flight::share(row.held, times.phase_ns))
        });
        table.row(vec![
            match stream.stream {
                0 => "default".to_owned(),
                number => format!("{number:#x}"),
            },
            stream.pid.to_string(),
            stream.queue.to_string(),
            known(found.and_then(|queue| queue.queue_id)),
            stream.submissions.to_string(),
            held.unwrap_or_else(dash),
        ]);
    }
    table.write(out, layout)
}
