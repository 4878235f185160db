//! How long a frame of `tracer top` takes.

use std::process::Command;

use anyhow::Result;

use super::{Place, number};
use crate::cmd;

/// Returns the time of a frame, ms: the medians of the picture of 1,000 busy queues, and of its drawing on a screen in memory.
pub fn milliseconds(place: &Place<'_>) -> Result<f64> {
    let printed = cmd::read(&mut Command::new(place.programs.join("examples/frames")))?;
    Ok((number(&printed, "picture_ns")? + number(&printed, "draw_ns")?) / 1e6)
}
