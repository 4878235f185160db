//! What the programs decide, in words, for `record -vv`.
//!
//! A second object holds the programs with this in; from the one that is normally loaded every line is compiled out.

/// Says a line, at level debug.
macro_rules! diagnose {
    ($format:literal $(, $argument:expr)* $(,)?) => {
        #[cfg(feature = "log")]
        aya_log_ebpf::debug!((), $format $(, $argument)*);
        #[cfg(not(feature = "log"))]
        {
            // Named in any case, so that no variable is unused in one object only; never evaluated.
            let _ = || {
                $(let _ = &$argument;)*
            };
        }
    };
}
