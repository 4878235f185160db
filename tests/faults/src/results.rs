//! The result of an attack: one row of the table in docs/reliability.md.

use std::{fmt, fs::OpenOptions, io::Write, path::PathBuf};

use serde::Serialize;

/// Names the file to which each attack appends its result, one JSON object a line.
const RESULTS: &str = "TRACER_FAULTS";

/// An attack, and what came of it so far.
#[derive(Clone, Debug, Serialize)]
pub struct Attack {
    /// What is attacked, and how.
    pub name: &'static str,
    /// How often it was tried.
    pub tries: usize,
    /// Tries after which nothing was harmed.
    pub survived: usize,
    /// Tries after which something was: with what.
    pub lost: Vec<String>,
}

impl Attack {
    /// An attack that was not tried yet.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            tries: 0,
            survived: 0,
            lost: Vec::new(),
        }
    }

    /// Counts a try: what was harmed, or that nothing was.
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
    /// If a try harmed something, or none was made.
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
