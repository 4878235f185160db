mod support;

mod aggregated;
mod coverage;
mod limits;
mod policies;
mod rings;
mod rules;
mod soundness;
