//! Failures requested on the command line: `--fail CREATE_QUEUE:2:ENOMEM`.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Errno;
use super::abi::{kfd_name, kfd_nr};

/// A request that the K-th call of a KFD ioctl fails.
#[derive(Debug)]
pub struct Failure {
    nr: u8,
    nth: u64,
    errno: Errno,
    seen: AtomicU64,
}

impl Failure {
    /// Counts a call. Returns the error if this is the call that is to fail.
    pub fn check(&self, nr: u8) -> Option<Errno> {
        let is_it = self.nr == nr && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.nth;
        is_it.then_some(self.errno)
    }
}

impl Clone for Failure {
    fn clone(&self) -> Self {
        Self {
            nr: self.nr,
            nth: self.nth,
            errno: self.errno,
            seen: AtomicU64::new(self.seen.load(Ordering::Relaxed)),
        }
    }
}

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let [name, nth, errno] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err(format!("{text}: not of the form IOCTL_NAME:K:ERRNO"));
        };
        let nr = kfd_nr(name).ok_or_else(|| format!("{name}: no KFD ioctl, such as {}", kfd_name(2)))?;
        let nth = nth
            .parse()
            .ok()
            .filter(|&nth| nth > 0)
            .ok_or_else(|| format!("{nth}: not a number from 1 on"))?;
        Ok(Self {
            nr,
            nth,
            errno: errno.parse()?,
            seen: AtomicU64::new(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kth_call_fails() {
        let failure: Failure = "CREATE_QUEUE:2:ENOMEM".parse().unwrap();
        let calls = [2, 3, 2, 2].map(|nr| failure.check(nr));
        assert_eq!(calls, [None, None, Some(Errno::ENOMEM), None]);
    }

    #[test]
    fn what_cannot_be_parsed() {
        for text in [
            "",
            "CREATE_QUEUE",
            "CREATE_QUEUE:0:ENOMEM",
            "NOPE:1:ENOMEM",
            "SVM:1:EWHAT",
            "SVM:1:EIO:x",
        ] {
            assert!(text.parse::<Failure>().is_err(), "{text}");
        }
    }
}
