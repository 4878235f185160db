//! The programs' decisions, in words, for `record -vv`.
//!
//! A second object contains the programs with these messages. The normally loaded object is compiled without them.

/// Logs a line at level debug.
macro_rules! diagnose {
    ($format:literal $(, $argument:expr)* $(,)?) => {
        #[cfg(feature = "log")]
        aya_log_ebpf::debug!((), $format $(, $argument)*);
        #[cfg(not(feature = "log"))]
        {
            // Named in either object, so that no variable is unused in one of them only; never evaluated.
            let _ = || {
                $(let _ = &$argument;)*
            };
        }
    };
}
