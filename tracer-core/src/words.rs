//! Words: names of values, nouns with their numbers, and errors with their causes.

use std::error::Error;
use std::fmt;

/// A value of a closed set, which data names by a word. `strum::IntoStaticStr` implements it.
pub trait Named: Into<&'static str> {
    /// Returns the name used in data.
    fn name(self) -> &'static str {
        self.into()
    }
}

impl<T: Into<&'static str>> Named for T {}

/// A number and a noun for what it counts.
#[derive(Clone, Copy, Debug)]
pub struct Count(u64, &'static str);

/// Returns `1 packet`, `2 packets`. The last word of the noun gets the plural.
#[must_use]
pub fn count(number: u64, noun: &'static str) -> Count {
    Count(number, noun)
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = *self;
        write!(f, "{number} ")?;
        if number == 1 {
            return f.write_str(noun);
        }
        match noun.strip_suffix('y') {
            Some(stem) => write!(f, "{stem}ies"),
            None if noun.ends_with(['s', 'x', 'h']) => write!(f, "{noun}es"),
            None => write!(f, "{noun}s"),
        }
    }
}

/// Returns the causes of an error, from the outermost on.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// Returns what an error and its causes say, from the outermost on, each once. The outermost one alone rarely says what happened.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Failed(&'static str, Option<Box<Failed>>);

    impl fmt::Display for Failed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Failed {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn each_cause_is_said_once() {
        let innermost = Failed("no memory", None);
        let middle = Failed("map EVENTS", Some(Box::new(innermost)));
        let outermost = Failed("cannot load: map EVENTS", Some(Box::new(middle)));
        assert_eq!(with_causes(&outermost), "cannot load: map EVENTS: no memory");
        assert_eq!(with_causes(&Failed("alone", None)), "alone");
    }

    #[test]
    fn nouns_follow_their_numbers() {
        for (number, noun, expected) in [
            (1, "packet", "1 packet"),
            (0, "packet", "0 packets"),
            (2, "kernel dispatch", "2 kernel dispatches"),
            (3, "copy", "3 copies"),
            (4, "index", "4 indexes"),
            (5, "GPU", "5 GPUs"),
        ] {
            assert_eq!(count(number, noun).to_string(), expected);
        }
    }
}
