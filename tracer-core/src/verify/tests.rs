mod support;

mod aggregated;
mod coverage;
mod limits;
mod policies;
mod profile;
mod rings;
mod rules;
mod soundness;
