//! The trace on disk: a directory of Parquet tables with a manifest.
//!
//! ```text
//! app.trace/
//!     manifest.json           where the trace comes from, how it was taken, whether it is whole
//!     dispatches/
//!         part-000001.5b9e03d2.parquet
//!         part-000002-000009.c1f7a604.parquet
//!     doorbells/ ...
//! ```
//!
//! A [`TraceWriter`] takes facts and never waits for the disk. A [`Trace`] returns them, or whole tables. Every file is written
//! under a temporary name, synced and renamed, so that a recorder killed at any moment leaves a readable trace that misses at most
//! the last second. The writer thread has the rights of the trace's owner only, and accesses files by the folder's descriptor.
//! Readers open only regular files of bounded size. [`tracer_core::tables`] describes the tables; `docs/events.md` is generated from it.

mod columns;
mod compact;
mod cursor;
mod docs;
mod error;
mod facts;
mod file;
mod folder;
pub mod manifest;
mod part;
mod query;
mod reader;
mod sink;
mod snapshot;
mod waiting;
mod writer;

pub use docs::schema_markdown;
pub use error::{Damage, StoreError};
pub use facts::Facts;
pub use manifest::Manifest;
pub use query::{Files, Frame};
pub use reader::{State, Trace};
pub use sink::{Placing, SizeGauge, Written};
pub use writer::TraceWriter;
