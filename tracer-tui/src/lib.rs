//! The screen of `tracer top`.
//!
//! [`Top`] is the state of the screen. [`draw`] puts it on a screen and does nothing else: it uses no clock, no file and no lock.
//! The content comes in as [`tracer_core::live::Picture`]s, live or replayed. [`terminal`] is the only part that uses a real
//! terminal.

mod cells;
mod draw;
mod keys;
mod notes;
mod rows;
mod state;
mod table;
pub mod terminal;
mod text;
mod views;

pub use draw::draw;
pub use keys::Action;
pub use state::{Status, Top, View};
