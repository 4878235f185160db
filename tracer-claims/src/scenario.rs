//! The scenarios that test claims: workloads of the bundled dispatcher (tests/hsa-dispatch).

/// A workload of the dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Scenario {
    /// Kernels on one queue. The program waits for each of them.
    Launches,
    /// Copies to the GPU and back, without any kernel of the program.
    Copies,
    /// Queues that are created, used once and destroyed.
    Queues,
    /// Kernels on the queue for cooperative launches.
    Cooperative,
    /// Launches that must fail.
    Failures,
    /// Copies among many kernels.
    Inference,
    /// Kernels on HIP streams.
    Streams,
}

/// The requests of a scenario to the runtime. The dispatcher checks its results: if it succeeds, all requests were fulfilled.
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
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the workload of the dispatcher, with its options.
    #[must_use]
    pub const fn workload(self) -> &'static [&'static str] {
        match self {
            Self::Launches => &["compute-only", "-n", "100"],
            // Large enough that neither HIP nor the runtime copies with a kernel.
            Self::Copies => &["copy-only", "-n", "5", "--bytes", "1048576"],
            Self::Queues => &["churn", "--queues", "20"],
            Self::Cooperative => &["cooperative", "-n", "20"],
            Self::Failures => &["fail"],
            Self::Inference => &["inference", "-n", "5", "--dispatches", "20", "--bytes", "1048576"],
            // More streams than HIP creates queues of its own accord.
            Self::Streams => &["streams", "--api", "hip", "--streams", "6", "-n", "20"],
        }
    }

    /// Returns whether calls of HIP and HSA are recorded.
    #[must_use]
    pub const fn with_calls(self) -> bool {
        matches!(self, Self::Streams)
    }

    /// Returns the requests of the workload to the runtime.
    #[must_use]
    pub const fn asked(self) -> Asked {
        let (dispatches, copies, queues) = match self {
            Self::Launches => (100, 0, 1),
            Self::Copies => (0, 10, 0),
            Self::Queues => (20, 0, 20),
            Self::Cooperative => (20, 0, 1),
            // Of the launches, the GPU refuses one and accepts one. The other refused packet is of an unknown kind.
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
