//! What the attacks share: how often they are tried, and the table of their results.

pub mod blocking;
pub mod in_kernel;
mod results;

pub use results::Attack;

/// The variable by which `cargo xtask test --long` asks for long runs.
pub const LONG: &str = "TRACER_LONG";

/// The variable that says how often attacks are tried, instead of either number: to make a long run in parts, or a longer one.
pub const TRIES: &str = "TRACER_TRIES";

/// How often an attack is tried: `quick` times in every test run, `long` times under `cargo xtask test --long`.
#[must_use]
pub fn tries(quick: usize, long: usize) -> usize {
    let given = std::env::var(TRIES).ok().and_then(|value| value.parse().ok());
    let is_long = std::env::var_os(LONG).is_some_and(|value| value == "1");
    given.unwrap_or(if is_long { long } else { quick })
}
