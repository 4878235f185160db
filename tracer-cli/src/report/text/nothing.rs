//! Recordings of processes that submitted nothing, and tables without rows.

use std::io::{self, Write};

use tracer_core::{
    capabilities::Capabilities,
    summary::{Nothing, Report},
    words::count,
};
use tracer_store::manifest::{Manifest, Target};

use super::{By, Layout};

/// Writes what the processes did not do, and the likely causes, in lines of at most 80 columns.
pub fn causes(out: &mut impl Write, nothing: Nothing, manifest: &Manifest, report: &Report) -> io::Result<()> {
    let queues = count(report.queues.len() as u64 + report.other_queues, "queue");
    let loaded = manifest.libraries.iter().any(|library| !library.path.is_empty());
    let sentence = match nothing {
        Nothing::NoKfd if loaded => "an HSA runtime was loaded, and made no ioctl of /dev/kfd".to_owned(),
        Nothing::NoKfd => "no process made an ioctl of /dev/kfd".to_owned(),
        Nothing::NoQueue => "processes made ioctls of /dev/kfd, and created no queue".to_owned(),
        Nothing::NoSubmission => format!("processes created {queues}, and submitted nothing"),
    };
    writeln!(out, "nothing    {sentence}")?;
    let command = matches!(manifest.target, Target::Command { .. });
    let causes: &[&str] = match nothing {
        _ if !command => &[
            "the processes had no work for a GPU while tracer recorded",
            "they wait for what they submitted before, which tracer does not see",
        ],
        Nothing::NoKfd => &[
            "the program uses no GPU, or another device",
            "it cannot open /dev/kfd: `tracer doctor` says why",
            "a daemon or a container runtime works for it: record with `-a`",
        ],
        Nothing::NoQueue => &[
            "the program only asked for the GPUs, as rocminfo does",
            "it failed before its first queue: its own messages say why",
            "its runtime does not support this GPU",
        ],
        Nothing::NoSubmission => &[
            "the program failed before its first kernel: its own messages say why",
            "it had nothing to compute, or the recording ended before that",
        ],
    };
    for (at, cause) in causes.iter().enumerate() {
        writeln!(out, "{:<10} {cause}", if at == 0 { "causes" } else { "" })?;
    }
    Ok(())
}

/// Writes why a table that the user asked for has no rows. `is_whole` says that no row was lost.
pub fn rows(out: &mut impl Write, by: By, watched: Capabilities, is_whole: bool, layout: Layout) -> io::Result<()> {
    let sentence = match by {
        By::Api | By::Stream | By::Nesting if !watched.api && !watched.api_stats => {
            "API calls were not recorded; `tracer record --api all` records them"
        }
        By::Ioctl if !watched.ioctls => "ioctls were not watched; `tracer doctor` says why",
        By::Ring if !watched.kernel_rings => "rings of the driver were not watched; `tracer doctor` says why",
        By::Ring => "no job ran on a ring of the driver",
        By::Driver if !watched.driver && !watched.driver_events => {
            "functions of the driver were not watched; `tracer doctor` says why"
        }
        By::Driver => "no watched function of the driver was called, and no event of it came",
        By::Finding => "the rules of tracer found nothing",
        _ => "the recording has no rows for this table",
    };
    let rest = match is_whole {
        true => "",
        false => ", by the rows that tracer could read; others were lost, or could not be read",
    };
    writeln!(out)?;
    out.write_all(
        layout
            .wrap(&format!("nothing    {sentence}{rest}"), super::LABEL)
            .as_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use tracer_core::{sample, summary::Summary, tables::Fact};
    use tracer_store::manifest::Library;

    use clap::ValueEnum;

    use super::*;
    use crate::record::manifest;
    use crate::report::layout::Style;

    /// Returns what is written instead of a table.
    fn instead(by: By, watched: Capabilities, is_whole: bool) -> String {
        let layout = Layout {
            width: Some(80),
            rows: 10,
            style: Style::Plain,
        };
        let mut text = Vec::new();
        rows(&mut text, by, watched, is_whole, layout).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_table_without_rows_says_whether_its_source_was_watched() {
        for &by in By::value_variants() {
            let (all, none) = (sample::EVERYTHING, Capabilities::default());
            let cut = instead(by, all, false);
            assert_ne!(cut, instead(by, all, true));
            for text in [instead(by, all, true), instead(by, none, true), cut] {
                assert!(
                    text.trim().len() > 20 && text.lines().all(|line| line.len() <= 80),
                    "{text}"
                );
            }
            let has_source = [By::Api, By::Stream, By::Nesting, By::Ioctl, By::Ring, By::Driver].contains(&by);
            assert_eq!(instead(by, all, true) != instead(by, none, true), has_source, "{by:?}");
        }
    }

    #[test]
    fn each_reason_is_one_sentence_with_causes_and_fits_80_columns() {
        let mut summary = Summary::new(sample::EVERYTHING);
        summary.add(&Fact::Queue(sample::queue(0)));
        let report = summary.finish(true);
        let command = Target::Command {
            argv: vec!["ls".to_owned()],
        };
        let mut sentences = Vec::new();
        for target in [command, Target::System] {
            for nothing in [Nothing::NoKfd, Nothing::NoQueue, Nothing::NoSubmission] {
                for libraries in [
                    Vec::new(),
                    vec![Library {
                        path: "a.so".to_owned(),
                        ..Library::default()
                    }],
                ] {
                    let mut manifest = manifest::begin(target.clone());
                    manifest.libraries = libraries;
                    let mut text = Vec::new();
                    causes(&mut text, nothing, &manifest, &report).unwrap();
                    let text = String::from_utf8(text).unwrap();
                    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
                    assert!((2..=4).contains(&text.lines().count()), "{text}");
                    sentences.push(text.lines().next().unwrap().to_owned());
                }
            }
        }
        let of_command = [
            "nothing    no process made an ioctl of /dev/kfd",
            "nothing    an HSA runtime was loaded, and made no ioctl of /dev/kfd",
            "nothing    processes made ioctls of /dev/kfd, and created no queue",
            "nothing    processes made ioctls of /dev/kfd, and created no queue",
            "nothing    processes created 1 queue, and submitted nothing",
            "nothing    processes created 1 queue, and submitted nothing",
        ];
        assert_eq!(sentences, [of_command, of_command].concat());
    }
}
