//! The claims of the documents that this tool was built from, and what evidence says of each.
//!
//! A claim has a scenario, which is a workload of the bundled dispatcher, and checks of what was recorded of it. Evidence
//! decides, and nothing else: the word of the driver's and the runtime's sources is shown beside it. What a machine or a
//! version of this tool can't show is inconclusive or not tested, with the reason, and never taken for true.

mod catalog;
mod checks;
mod evidence;
mod judge;
mod report;
mod scenario;

pub use catalog::{CLAIMS, Claim};
pub use evidence::{Evidence, Observed, Observer};
pub use judge::judge;
pub use report::{Check, ClaimVerdict, Control, Gpu, Place, Report, Standing, Tally};
pub use scenario::{Asked, Scenario};

#[cfg(test)]
mod tests;
