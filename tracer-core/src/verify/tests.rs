pub(crate) mod support;

mod coverage;
mod limits;
mod policies;
mod rings;
mod rules;
mod soundness;
