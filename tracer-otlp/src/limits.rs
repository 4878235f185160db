//! How long a collector may take.

use std::time::Duration;

/// The limits on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum time until a connection is there.
    pub connect: Duration,
    /// Maximum time of a whole push, which includes the connection and the answer.
    pub push: Duration,
    /// Maximum time of the last push.
    pub last: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            push: Duration::from_secs(10),
            last: Duration::from_secs(3),
        }
    }
}
