//! The harness of the end-to-end tests: AMD's unmodified runtime on the simulated GPU, recorded by `tracer`, and compared field by
//! field with the simulator's truth log and the dispatcher's own log.

pub mod baseline;
pub mod browser;
pub mod cgroup;
pub mod compare;
pub mod dispatcher;
pub mod observed;
pub mod place;
pub mod prometheus;
pub mod running;
pub mod scenario;
pub mod terminal;
pub mod truth;
pub mod verdict;
