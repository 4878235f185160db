//! The common parts of the attacks: their number of tries, and the table of their results.

pub mod blocking;
pub mod in_kernel;
mod results;

pub use results::Attack;

/// The variable by which `cargo xtask test --long` requests long runs.
pub const LONG: &str = "TRACER_LONG";

/// The variable that gives the number of tries of every attack, instead of the default numbers: to split a long run, or to make it
/// longer.
pub const TRIES: &str = "TRACER_TRIES";

/// Returns how often an attack is tried: `quick` times in every test run, `long` times under `cargo xtask test --long`.
#[must_use]
pub fn tries(quick: usize, long: usize) -> usize {
    let given = std::env::var(TRIES).ok().and_then(|value| value.parse().ok());
    let is_long = std::env::var_os(LONG).is_some_and(|value| value == "1");
    given.unwrap_or(if is_long { long } else { quick })
}
