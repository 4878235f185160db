//! Calls of HIP, HSA and OpenCL functions that were counted instead of recorded one by one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::table;

table! {
    /// Calls that were only counted, per function and process: those of frequent functions (the classes `query` and `step`, unless
    /// `record --api-rows` asks for them), and with `record --api stats` all. With `stats` there are no `api_calls`, and no
    /// submission names a call or a stream.
    pub struct ApiStats: "api_stats" by time_ns, Snapshots {
        /// Number of the counter in the recording.
        pub counter: u32,
        /// Process; null for the calls of all processes beyond the limit, which share one row.
        pub pid: Option<u32>,
        /// Time of the first sample with these numbers.
        pub time_ns: u64 => "ns",
        /// Library: `hip`, `hsa` or `opencl`.
        pub layer: Cow<'static, str>,
        /// Exported name of the function.
        pub function: Cow<'static, str>,
        /// Calls that began; calls that neither returned nor were left were still open at the end.
        pub calls: u64 => "calls",
        /// Calls that returned.
        pub returned: u64 => "calls",
        /// Calls that returned an error (`hipErrorNotReady` is not one).
        pub failed: u64 => "calls",
        /// Calls that were left without a return, or whose thread exited.
        pub left: u64 => "calls",
        /// Sum of the durations of the calls that returned.
        pub total_ns: u64 => "ns",
        /// The least duration; null if none returned, or it may be that of a call before the recording (`top`, key R).
        pub min_ns: Option<u64> => "ns",
        /// The greatest duration; null in the same cases.
        pub max_ns: Option<u64> => "ns",
        /// All durations, in buckets whose width is at most an eighth of their durations: `END:COUNT`, separated by spaces, with
        /// the bucket's greatest duration in ns and its count.
        pub durations: Durations,
    }
}

impl ApiStats {
    /// Returns the counts since `before`. A call that was open at that time is included.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        // The shortest and the longest of these calls are unknown, unless there were no calls before.
        let alone = before.returned == 0;
        Self {
            calls: self.calls.saturating_sub(before.returned.saturating_add(before.left)),
            returned: self.returned.saturating_sub(before.returned),
            failed: self.failed.saturating_sub(before.failed),
            left: self.left.saturating_sub(before.left),
            total_ns: self.total_ns.saturating_sub(before.total_ns),
            min_ns: self.min_ns.filter(|_| alone),
            max_ns: self.max_ns.filter(|_| alone),
            durations: self.durations.since(&before.durations),
            ..self.clone()
        }
    }
}

/// Number of durations in each bucket, identified by its longest duration in ns, shortest bucket first. Empty buckets are omitted.
/// A bucket is at most an eighth of its durations wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations(pub Vec<(u64, u64)>);

impl Durations {
    /// Returns the form used in data: `END:COUNT`, separated by spaces.
    #[must_use]
    pub fn text(&self) -> String {
        let buckets = self.0.iter().map(|(end, count)| format!("{end}:{count}"));
        buckets.collect::<Vec<_>>().join(" ")
    }

    /// Parses the form of [`Self::text`]; returns `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bucket = |word: &str| {
            let (end, count) = word.split_once(':')?;
            Some((end.parse().ok()?, count.parse().ok()?))
        };
        let buckets: Option<_> = text.split_ascii_whitespace().map(bucket).collect();
        buckets.map(Self)
    }

    fn since(&self, before: &Self) -> Self {
        let before: BTreeMap<u64, u64> = before.0.iter().copied().collect();
        let mut since = self.0.clone();
        for (end, count) in &mut since {
            *count = count.saturating_sub(before.get(end).copied().unwrap_or(0));
        }
        since.retain(|(_, count)| *count > 0);
        Self(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(calls: u64, left: u64, durations: &[(u64, u64)]) -> ApiStats {
        let returned = durations.iter().map(|(_, count)| count).sum();
        let ends = durations.iter().map(|(end, _)| *end);
        ApiStats {
            counter: 1,
            pid: Some(7),
            time_ns: 5,
            layer: "hip".into(),
            function: "hipMalloc".into(),
            calls,
            returned,
            failed: 0,
            left,
            total_ns: durations.iter().map(|(end, count)| end * count).sum(),
            min_ns: ends.clone().min(),
            max_ns: ends.max(),
            durations: Durations(durations.to_vec()),
        }
    }

    #[test]
    fn durations_are_read_as_they_are_written() {
        let durations = Durations(vec![(15, 1), (1023, 7), (u64::MAX, 2)]);
        assert_eq!(durations.text(), "15:1 1023:7 18446744073709551615:2");
        assert_eq!(Durations::parse(&durations.text()), Some(durations));
        assert_eq!(Durations::parse(""), Some(Durations::default()));
        assert_eq!(Durations::parse("15"), None);
        assert_eq!(Durations::parse("15:x"), None);
    }

    #[test]
    fn what_came_since_has_the_calls_that_were_open() {
        // One of the 4 calls was open, and another was left.
        let before = stats(4, 1, &[(15, 2)]);
        let now = stats(6, 1, &[(15, 4), (31, 1)]);
        let since = now.since(&before);
        assert_eq!((since.calls, since.returned, since.left, since.total_ns), (3, 3, 0, 61));
        assert_eq!((since.min_ns, since.max_ns), (None, None));
        assert_eq!(since.durations.0, [(15, 2), (31, 1)]);
        assert_eq!(now.since(&stats(0, 0, &[])), now);
        let none = now.since(&now);
        assert_eq!(
            (none.calls, none.returned, none.durations),
            (0, 0, Durations::default())
        );
    }
}
