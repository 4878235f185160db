//! The result of an attack: one row of the table in docs/reliability.md.

use std::{fmt, fs::OpenOptions, io::Write, path::PathBuf};

use serde::Serialize;

/// The variable that names the file to which each attack appends its result, one JSON object per line.
const RESULTS: &str = "TRACER_FAULTS";

/// An attack, and its results so far.
#[derive(Clone, Debug, Serialize)]
pub struct Attack {
    /// The target and the method of the attack.
    pub name: &'static str,
    /// The number of tries.
    pub tries: usize,
    /// The tries that harmed nothing.
    pub survived: usize,
    /// The tries that harmed something, each with the harm.
    pub lost: Vec<String>,
}

impl Attack {
    /// Returns an attack that was not tried yet.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            tries: 0,
            survived: 0,
            lost: Vec::new(),
        }
    }

    /// Counts a try, with the harm that it did or without any.
    pub fn count(&mut self, harm: Result<(), String>) {
        self.tries += 1;
        match harm {
            Ok(()) => self.survived += 1,
            Err(harm) => self.lost.push(format!("try {}: {harm}", self.tries)),
        }
    }

    /// Reports the result.
    ///
    /// # Panics
    /// Panics if a try harmed something, or if there was no try.
    pub fn finish(self) {
        println!("{self}");
        if let Some(path) = std::env::var_os(RESULTS).map(PathBuf::from) {
            let line = serde_json::to_string(&self).expect("plain data");
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .expect("the file of results");
            writeln!(file, "{line}").expect("writing a result");
        }
        assert!(self.tries > 0, "{}: no try", self.name);
        assert!(self.lost.is_empty(), "{self}");
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} tries, {} survived, {} lost",
            self.name,
            self.tries,
            self.survived,
            self.lost.len()
        )?;
        self.lost.iter().try_for_each(|lost| write!(f, "\n  {lost}"))
    }
}
