//! The claims of the documents from which this tool was built, and what the evidence says about each claim.
//!
//! A claim has a scenario, which is a workload of the bundled dispatcher, and checks of the recording of that workload. Only
//! evidence decides. What the sources of the driver and the runtime say is shown beside it. If a machine or a version of this
//! tool cannot show something, the claim is inconclusive or not tested, with the reason, and never taken for true.

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
