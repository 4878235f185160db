//! Permissions of written files: which other users may read them.

use std::str::FromStr;

use rustix::fs::Mode as Bits;

/// Permissions of new folders and files. The default is private: 0700 for folders, 0600 for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(u32);

/// A mode that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMode;

impl std::fmt::Display for BadMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("give the folder's permissions in octal, with all of them for the owner: 700, 750, 755, 770 or 777")
    }
}

impl std::error::Error for BadMode {}

impl Mode {
    /// Rights for the owner only.
    pub const PRIVATE: Self = Self(0o700);

    /// Returns the permissions of a folder.
    #[must_use]
    pub const fn folder(self) -> Bits {
        Bits::from_raw_mode(self.0)
    }

    /// Returns the permissions of a file: those of a folder without the right to execute.
    #[must_use]
    pub const fn file(self) -> Bits {
        Bits::from_raw_mode(self.0 & 0o666)
    }
}

impl std::fmt::Display for Mode {
    /// Writes the mode in the form in which it is parsed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:o}", self.0)
    }
}

impl Default for Mode {
    fn default() -> Self {
        Self::PRIVATE
    }
}

impl FromStr for Mode {
    type Err = BadMode;

    /// Parses octal digits. The owner needs every right: the recorder writes with the owner's rights.
    fn from_str(text: &str) -> Result<Self, BadMode> {
        let digits = text.bytes().all(|digit| digit.is_ascii_digit());
        match u32::from_str_radix(text, 8) {
            Ok(bits) if digits && bits <= 0o777 && bits & 0o700 == 0o700 => Ok(Self(bits)),
            _ => Err(BadMode),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lose_the_right_to_execute() {
        let of = |text: &str| {
            let mode: Mode = text.parse().unwrap();
            (mode.folder().as_raw_mode(), mode.file().as_raw_mode())
        };
        assert_eq!(of("700"), (0o700, 0o600));
        assert_eq!(of("0755"), (0o755, 0o644));
        assert_eq!(of("770"), (0o770, 0o660));
        assert_eq!(
            (Mode::default(), Mode::PRIVATE.to_string()),
            (Mode::PRIVATE, "700".to_owned())
        );
    }

    #[test]
    fn modes_that_make_no_sense_are_refused() {
        for text in [
            "",
            "rwx",
            "-700",
            "+700",
            "888",
            "600",
            "077",
            "1777",
            "4700",
            "70000000000",
        ] {
            assert_eq!(text.parse::<Mode>(), Err(BadMode), "{text}");
        }
    }
}
