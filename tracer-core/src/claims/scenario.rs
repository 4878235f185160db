//! What is run to test claims: workloads of the bundled dispatcher (tests/hsa-dispatch).

/// A workload of the dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scenario {
    /// Kernels, each waited for, on one queue.
    Launches,
    /// Copies to the GPU and back, no kernel of the program.
    Copies,
    /// Queues that are created, used once and destroyed.
    Queues,
    /// Kernels on the queue of cooperative launches.
    Cooperative,
    /// Launches that must fail.
    Failures,
    /// Copies among many kernels.
    Inference,
    /// Kernels on streams of HIP.
    Streams,
}

/// What a scenario asks the runtime for. The dispatcher checks its results: if it succeeds, all of this was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Kernel launches.
    pub dispatches: u64,
    /// Copies between host and GPU.
    pub copies: u64,
    /// Queues.
    pub queues: u64,
}

impl Scenario {
    /// Every scenario, in the order in which they are run.
    pub const ALL: [Self; 7] = [
        Self::Launches,
        Self::Copies,
        Self::Queues,
        Self::Cooperative,
        Self::Failures,
        Self::Inference,
        Self::Streams,
    ];

    /// Its name, which is also that of its trace.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launches => "launches",
            Self::Copies => "copies",
            Self::Queues => "queues",
            Self::Cooperative => "cooperative",
            Self::Failures => "failures",
            Self::Inference => "inference",
            Self::Streams => "streams",
        }
    }

    /// The dispatcher's workload with its options.
    #[must_use]
    pub const fn workload(self) -> &'static [&'static str] {
        match self {
            Self::Launches => &["compute-only", "-n", "100"],
            // Large enough that neither HIP nor the runtime copies by a kernel.
            Self::Copies => &["copy-only", "-n", "5", "--bytes", "1048576"],
            Self::Queues => &["churn", "--queues", "20"],
            Self::Cooperative => &["cooperative", "-n", "20"],
            Self::Failures => &["fail"],
            Self::Inference => &["inference", "-n", "5", "--dispatches", "20", "--bytes", "1048576"],
            // More than HIP makes queues of its own accord.
            Self::Streams => &["streams", "--api", "hip", "--streams", "6", "-n", "20"],
        }
    }

    /// Whether calls of HIP and HSA are recorded.
    #[must_use]
    pub const fn with_calls(self) -> bool {
        matches!(self, Self::Streams)
    }

    /// What the workload asks the runtime for.
    #[must_use]
    pub const fn asked(self) -> Asked {
        let (dispatches, copies, queues) = match self {
            Self::Launches => (100, 0, 1),
            Self::Copies => (0, 10, 0),
            Self::Queues => (20, 0, 20),
            Self::Cooperative => (20, 0, 1),
            // Of its launches, one is refused by the GPU and one is right; the other refused packet is of no known kind.
            Self::Failures => (2, 0, 0),
            Self::Inference => (100, 10, 1),
            Self::Streams => (121, 0, 0),
        };
        Asked {
            dispatches,
            copies,
            queues,
        }
    }
}
