//! The packet log: one JSON line per submitted packet, written after the work.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::kernels::Kernels;
use crate::packet::Kind;
use crate::producer::Submission;

/// A line of the log.
#[derive(Debug, Serialize)]
struct Line<'a> {
    queue: String,
    queue_id: u64,
    index: u64,
    kind: &'static str,
    #[serde(flatten)]
    dispatch: Option<Dispatch<'a>>,
    completion_signal: String,
    doorbell: u64,
    direct: bool,
    reserve_ns: u64,
    time_ns: u64,
}

/// The fields that only dispatches have.
#[derive(Debug, Serialize)]
struct Dispatch<'a> {
    kernel: Option<&'a str>,
    kernel_object: String,
    kernarg: String,
    grid: [u32; 3],
    workgroup: [u32; 3],
}

/// Writes `submissions` to `path`. `kernels` are those whose names are known.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write(path: &Path, kernels: Option<&Kernels>, submissions: &[(u64, u64, Submission)]) -> Result<()> {
    let failed = |source: std::io::Error| Error::File {
        path: path.to_owned(),
        source,
    };
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    for (queue, queue_id, submission) in submissions {
        let line = line(*queue, *queue_id, submission, |object| kernels?.name_of(object));
        serde_json::to_writer(&mut file, &line).map_err(|error| failed(error.into()))?;
        file.write_all(b"\n").map_err(failed)?;
    }
    file.flush().map_err(failed)
}

fn line<'a>(queue: u64, queue_id: u64, submission: &Submission, name: impl Fn(u64) -> Option<&'a str>) -> Line<'a> {
    let packet = &submission.packet;
    let dispatch = matches!(packet.kind(), Kind::Dispatch | Kind::ExtDispatch).then(|| Dispatch {
        kernel: name(packet.kernel_object()),
        kernel_object: hex(packet.kernel_object()),
        kernarg: hex(packet.kernarg()),
        grid: packet.grid(),
        workgroup: packet.workgroup(),
    });
    Line {
        queue: hex(queue),
        queue_id,
        index: submission.index,
        kind: packet.kind().name(),
        dispatch,
        completion_signal: hex(packet.completion()),
        doorbell: submission.doorbell,
        direct: submission.direct,
        reserve_ns: submission.reserve_ns,
        time_ns: submission.time_ns,
    }
}

/// Formats an address as text, because JSON numbers lose their low bits in many readers.
fn hex(value: u64) -> String {
    format!("{value:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hsa::executable::Kernel;
    use crate::hsa::types::SignalHandle;
    use crate::packet::{Grid, Packet};

    fn json(packet: Packet) -> serde_json::Value {
        let submission = Submission {
            packet,
            index: 7,
            doorbell: 9,
            direct: false,
            reserve_ns: 100,
            time_ns: 200,
        };
        serde_json::to_value(line(0xabc, 3, &submission, |object| (object == 0x40).then_some("fill"))).expect("JSON")
    }

    #[test]
    fn a_dispatch_names_its_kernel() {
        let kernel = Kernel {
            object: 0x40,
            kernarg_bytes: 16,
            group_bytes: 0,
            private_bytes: 0,
        };
        let line = json(Packet::dispatch(
            &kernel,
            Grid {
                items: 100,
                workgroup: 64,
            },
            0x80,
        ));
        assert_eq!(
            (&line["queue"], &line["kernel"], &line["kernel_object"]),
            (&"0xabc".into(), &"fill".into(), &"0x40".into())
        );
        assert_eq!((line["index"].as_u64(), line["doorbell"].as_u64()), (Some(7), Some(9)));
        assert_eq!(line["grid"], serde_json::json!([100, 1, 1]));
    }

    #[test]
    fn a_barrier_has_no_kernel() {
        let line = json(Packet::barrier_and(&[]).completing(SignalHandle { handle: 0x10 }));
        assert_eq!(
            (&line["kind"], &line["completion_signal"]),
            (&"barrier_and".into(), &"0x10".into())
        );
        assert!(line.get("kernel").is_none());
    }
}
