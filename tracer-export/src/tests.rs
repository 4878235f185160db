//! Each format, of one small recording, read back by readers that share no code with the writers.

mod chrome;
mod perfetto;
mod recording;
mod rocpd;
mod rows;
mod wire;

use tracer_core::tables::Fact;

use crate::{Exporter, Written};

/// Passes facts to an exporter.
fn export(mut exporter: Box<dyn Exporter + '_>, facts: Vec<Fact>) -> Written {
    for fact in facts {
        exporter.fact(fact).unwrap();
    }
    exporter.finish(&[]).unwrap()
}
