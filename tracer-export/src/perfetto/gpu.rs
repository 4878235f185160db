//! What a GPU ran, in the message that viewers have for it.

use std::io::{self, Write};

use tracer_core::tables::Datum;

use super::Perfetto;
use super::intern::Kind;
use super::proto::{gpu, trace_packet as packet};
use super::wire::Message;
use crate::timeline::{Event, Gpu, Track};

impl<W: Write> Perfetto<W> {
    /// Writes what a GPU ran, on the line of the queue.
    pub(super) fn gpu(&mut self, track: Track, time: &Gpu, of: &Event) -> io::Result<()> {
        let queue = self.names.get(&track).cloned().unwrap_or_default();
        let queue = self.interned.number(Kind::Gpu, &queue);
        let kernel = self.interned.number(Kind::Gpu, &of.name);
        let pid = match track {
            Track::Queue { pid, .. } => pid,
            _ => 0,
        };
        let context = self.interned.number(Kind::Context, &pid.to_string());
        let ordinal = time.gpu_id.and_then(|id| self.gpus.iter().position(|gpu| *gpu == id));
        self.gpu_events += 1;
        let number = self.gpu_events;
        let mut message = Message::default();
        message
            .uint(packet::TIMESTAMP, time.begin)
            .uint(packet::SEQUENCE_FLAGS, packet::NEEDED)
            .message(packet::GPU_RENDER_STAGE_EVENT, |body| {
                body.uint(gpu::EVENT_ID, number)
                    .uint(gpu::DURATION, time.end - time.begin)
                    .uint(gpu::CONTEXT, context)
                    .uint(gpu::HW_QUEUE_IID, queue)
                    .uint(gpu::STAGE_IID, kernel);
                if let Some(ordinal) = ordinal {
                    body.uint(gpu::GPU_ID, ordinal as u64);
                }
                for (column, datum) in of.args.each() {
                    let value = match datum {
                        Datum::Missing => continue,
                        Datum::Unsigned(n) if column.unit == "address" => format!("{n:#x}"),
                        Datum::Unsigned(n) => n.to_string(),
                        Datum::Signed(n) => n.to_string(),
                        Datum::Bool(is) => is.to_string(),
                        Datum::Text(text) => text.into_owned(),
                    };
                    body.message(gpu::EXTRA_DATA, |extra| {
                        extra.text(gpu::EXTRA_NAME, column.name).text(gpu::EXTRA_VALUE, &value);
                    });
                }
                if let Some((groups, items)) = time.launch {
                    body.message(gpu::LAUNCH, |launch| {
                        launch.message(gpu::GRID_SIZE, |of| sizes(of, groups));
                        launch.message(gpu::WORKGROUP_SIZE, |of| sizes(of, items.map(u32::from)));
                    });
                }
            });
        self.write(message)
    }
}

/// Fills a `Dim3` of gpu_render_stage_event.proto: x, y and z are fields 1 to 3.
fn sizes(message: &mut Message, sizes: [u32; 3]) {
    for (field, size) in (1..).zip(sizes) {
        message.uint(field, size.into());
    }
}
