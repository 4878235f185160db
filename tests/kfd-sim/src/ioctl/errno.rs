//! Error numbers, as ioctls return them.

use std::fmt;
use std::str::FromStr;

/// A (positive) error number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident)*) => {
        impl Errno {
            $(pub const $name: Self = Self(libc::$name);)*

            const NAMES: &[(&str, Self)] = &[$((stringify!($name), Self::$name)),*];
        }
    };
}

errnos! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV
    EINVAL ENFILE EMFILE ENOTTY EFBIG ENOSPC EROFS EPIPE ERANGE EDEADLK ENOSYS ETIME EPROTO EOVERFLOW EOPNOTSUPP
    EADDRINUSE ENOBUFS ETIMEDOUT ECANCELED
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.iter().find(|(_, errno)| errno == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl FromStr for Errno {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((_, errno)) = Self::NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*errno);
        }
        match text.parse() {
            Ok(number @ 1..=133) => Ok(Self(number)),
            _ => Err(format!("{text}: no error number or name")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_and_number() {
        assert_eq!("ENOMEM".parse(), Ok(Errno::ENOMEM));
        assert_eq!("25".parse(), Ok(Errno::ENOTTY));
        assert!("EWHAT".parse::<Errno>().is_err());
        assert!("0".parse::<Errno>().is_err());
        assert_eq!(format!("{:?} {:?}", Errno::EINVAL, Errno(77)), "EINVAL errno 77");
    }
}
