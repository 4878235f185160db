//! The report of a trace as one page of HTML: plots, and the tables of the text report.
//!
//! The page needs nothing but itself: no network, no fonts, and no script, which only shows the numbers under the pointer. Its
//! policy (`Content-Security-Policy`) allows exactly its own style and script, by their hashes.
//!
//! Every text passes through templates that escape it (`maud`). The tables come as [`Block`]s, never as markup: a name of a traced
//! program cannot become an element.

mod axis;
mod block;
mod depth;
mod lane;
mod latency;
mod layers;
mod page;
mod policy;
mod shares;
mod timeline;

pub use block::{Block, BlockError, Column, Kind};
pub use page::{Page, Section};
