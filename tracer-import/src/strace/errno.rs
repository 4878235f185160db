//! Results of calls: strace writes -1 and the name of an error.

/// Errors of the drivers' ioctls, and of calls that a signal interrupts (`include/uapi/asm-generic/errno*.h`,
/// `include/linux/errno.h`).
const ERRORS: [(&str, i64); 31] = [
    ("EPERM", 1),
    ("ENOENT", 2),
    ("ESRCH", 3),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("E2BIG", 7),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("ENODEV", 19),
    ("EINVAL", 22),
    ("EMFILE", 24),
    ("ENOTTY", 25),
    ("ENOSPC", 28),
    ("EDEADLK", 35),
    ("ENOSYS", 38),
    ("ETIME", 62),
    ("EOVERFLOW", 75),
    ("EOPNOTSUPP", 95),
    ("ETIMEDOUT", 110),
    ("EALREADY", 114),
    ("ECANCELED", 125),
    ("ERESTARTSYS", 512),
    ("ERESTARTNOINTR", 513),
    ("ERESTARTNOHAND", 514),
    ("ERESTART_RESTARTBLOCK", 516),
];

/// Returns the result of a call as the kernel has it, negative for an error; `None` if it did not return, or if the error is not in
/// the list.
pub fn result(text: &str) -> Option<i64> {
    let mut words = text.split_ascii_whitespace();
    match words.next()? {
        "-1" | "?" => {
            let name = words.next()?;
            ERRORS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|&(_, number)| -number)
        }
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_kernel() {
        assert_eq!(result("0 <0.000244>"), Some(0));
        assert_eq!(result("-1 EINVAL (Invalid argument) <0.000011>"), Some(-22));
        assert_eq!(
            result("? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.1>"),
            Some(-512)
        );
        assert_eq!(result("?"), None);
        assert_eq!(result("-1 EOFTOMORROW (x)"), None);
    }
}
