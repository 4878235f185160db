//! The knowledge and the rules of tracer: events in, facts out.
//!
//! [`event`] has the observations of capture sources. [`model`] is the state machine that turns them into rows of [`tables`]. [`runs`]
//! replaces rows that the disk cannot take in time. [`analysis`] has the rows of a report, and [`diff`] compares them. [`summary`] counts facts, and [`known`] decides which totals are known. [`live`] and [`metrics`] report current activity.
//! [`verify`] judges facts. Nothing in this crate does I/O, reads a clock or
//! needs a privilege, so it treats a live process and a stored trace in the same way.

pub mod analysis;
pub mod backend;
pub mod capabilities;
pub mod code_object;
pub mod diff;
pub mod event;

pub mod family;
pub mod foreign;
pub mod known;
pub mod live;
pub mod losses;
pub mod metrics;
pub mod model;
pub mod packet_path;
pub mod placement;
pub mod plots;
pub mod profile;
pub mod runs;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod script;
pub mod summary;
pub mod tables;
pub mod tally;
pub mod trace_format;
pub mod trace_page;
pub mod units;
pub mod verify;
pub mod words;
