//! Recordings of processes that submitted nothing.

use std::io::{self, Write};

use tracer_core::{
    summary::{Nothing, Report},
    words::count,
};
use tracer_store::manifest::{Manifest, Target};

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
        _ if !command => &["the processes had no work for a GPU while tracer recorded"],
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

#[cfg(test)]
mod tests {
    use tracer_core::{sample, summary::Summary, tables::Fact};
    use tracer_store::manifest::Library;

    use super::*;
    use crate::record::manifest;

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
