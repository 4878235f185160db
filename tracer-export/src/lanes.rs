//! Lanes of a track: spans that overlap are drawn side by side, because a track of slices can only nest them.

/// The lanes of one track.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// End of the last span of each lane.
    ends: Vec<u64>,
}

impl Lanes {
    /// Returns the first lane where a span overlaps no span before it, and takes its place there.
    pub fn take(&mut self, begin: u64, end: u64) -> usize {
        let free = self.ends.iter().position(|&last| last <= begin);
        let lane = free.unwrap_or(self.ends.len());
        match self.ends.get_mut(lane) {
            Some(last) => *last = end,
            None => self.ends.push(end),
        }
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spans_that_overlap_need_another_lane() {
        let mut lanes = Lanes::default();
        let taken = [(0, 10), (10, 20), (15, 30), (19, 21), (30, 31)].map(|(begin, end)| lanes.take(begin, end));
        assert_eq!(taken, [0, 0, 1, 2, 0]);
    }
}
