//! Measures how long a frame takes with 1000 queues at 50 000 dispatches per second: facts in, picture, screen in memory. Prints the
//! median and the 99th percentile of each.
//!
//! `cargo run --release -p tracer-tui --example frames`

use std::time::{Duration, Instant};

use ratatui::{Terminal, backend::TestBackend};
use tracer_core::{
    live::Live,
    sample,
    tables::{Dispatch, Doorbell, Fact, Queue},
};
use tracer_tui::{Status, Top, draw};

const QUEUES: u32 = 1_000;
/// Ten seconds at ten frames per second.
const FRAMES: u64 = 100;
const FRAME_NS: u64 = 100_000_000;
/// Dispatches between two frames.
const DISPATCHES: u64 = 5_000;

fn main() -> std::io::Result<()> {
    let mut live = Live::new();
    for queue in 0..QUEUES {
        live.apply(&Fact::Queue(Queue {
            queue,
            ..sample::queue(0)
        }));
    }
    let mut top = Top::new(Status::default());
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).map_err(std::io::Error::other)?;
    let mut taken = [Vec::new(), Vec::new(), Vec::new()];
    let mut number = 0;
    for frame in 0..FRAMES {
        let began = Instant::now();
        for step in 0..DISPATCHES {
            let time_ns = frame * FRAME_NS + step * (FRAME_NS / DISPATCHES);
            let (queue, index) = ((number % u64::from(QUEUES)) as u32, number / u64::from(QUEUES));
            number += 1;
            live.apply(&Fact::Dispatch(Dispatch {
                queue,
                ..sample::dispatch(index, time_ns)
            }));
            live.apply(&Fact::Doorbell(Doorbell {
                queue: Some(queue),
                ..sample::doorbell(index, time_ns)
            }));
        }
        let applied = Instant::now();
        live.advance((frame + 1) * FRAME_NS);
        let picture = live.picture();
        let pictured = Instant::now();
        top.push(picture);
        terminal
            .draw(|frame| draw(frame, &top))
            .map_err(std::io::Error::other)?;
        let drawn = Instant::now();
        for (all, one) in taken
            .iter_mut()
            .zip([applied - began, pictured - applied, drawn - pictured])
        {
            all.push(one);
        }
    }
    for (what, all) in ["facts", "picture", "draw"].into_iter().zip(&mut taken) {
        all.sort_unstable();
        let at = |part: usize| all.get(all.len() * part / 100).map_or(0, Duration::as_nanos);
        println!("{what}_ns={} {what}_p99_ns={}", at(50), at(99));
    }
    Ok(())
}
