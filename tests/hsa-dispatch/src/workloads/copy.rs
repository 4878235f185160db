//! Copies only.

use clap::Args;

use super::check;
use crate::clock;
use crate::context::Context;
use crate::copier::Copier;
use crate::error::Result;
use crate::report::Outcome;

/// Options of `copy-only`.
#[derive(Args, Debug)]
pub struct CopyOnly {
    /// Rounds of one copy to the GPU and one back.
    #[arg(short, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    /// Bytes of each copy.
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub bytes: u32,
}

impl CopyOnly {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let len = self.bytes as usize;
        let mut source = context.pools.host::<u8>(len)?;
        let mut target = context.pools.host::<u8>(len)?;
        let device = context.pools.device::<u8>(len)?;
        let mut copier = Copier::new(context)?;
        let mut result = Ok(());
        let start = clock::now();
        for round in 0..self.n {
            source.write(&(0..len).map(|i| pattern(round, i)).collect::<Vec<_>>());
            target.write(&vec![0; len]);
            copier.upload(&source, &device)?;
            copier.download(&device, &mut target)?;
            result = result.and(check(&format!("bytes copied in round {round}"), &target.read(), |i| {
                pattern(round, i)
            }));
        }
        outcome.set_times(start, clock::now());
        copier.report(outcome);
        result
    }
}

/// Returns byte `i` of round `round`. It differs between rounds, and never repeats at a power of two.
#[expect(clippy::cast_possible_truncation, reason = "only the low byte is wanted")]
pub(crate) fn pattern(round: u32, i: usize) -> u8 {
    (i % 251) as u8 ^ (i >> 12) as u8 ^ round as u8 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_differs_from_an_untouched_buffer() {
        assert!((0..10_000).all(|i| pattern(0, i) != 0));
        assert!((0..10_000).any(|i| pattern(0, i) != pattern(2, i)));
    }
}
