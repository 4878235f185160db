//! The screen of `tracer top`.
//!
//! [`Top`] is what is looked at and how; [`draw`] puts it on a screen and does nothing else: no clock, no file, no lock. What
//! is shown comes in as [`tracer_core::live::Picture`]s, live or replayed. [`terminal`] is the only part that knows a real
//! terminal.

mod draw;
mod keys;
mod picks;
mod state;
mod table;
pub mod terminal;
mod units;
mod views;

pub use draw::draw;
pub use keys::Action;
pub use state::{Status, Top, View};
