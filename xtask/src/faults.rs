//! The results of the attacks in tests/faults, as the table of docs/reliability.md.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The result of an attack, which it writes as one line of JSON.
#[derive(Deserialize)]
struct Attack {
    name: String,
    tries: u64,
    survived: u64,
    /// The tries that did harm, and the harm.
    lost: Vec<String>,
}

/// Reads the file to which the attacks append their results, and formats a Markdown table. A missing file gives no rows.
pub fn table(results: &Path) -> Result<String> {
    let text = match fs::read_to_string(results) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("cannot read {}", results.display()))?,
    };
    markdown(&text)
}

fn markdown(lines: &str) -> Result<String> {
    let attacks = lines.lines().map(serde_json::from_str::<Attack>);
    let mut attacks: Vec<Attack> = attacks.collect::<Result<_, _>>().context("a result is no JSON")?;
    attacks.sort_by(|a, b| a.name.cmp(&b.name));
    let mut table = "| attack | tries | survived | lost |\n|---|---|---|---|\n".to_owned();
    for attack in attacks {
        let Attack {
            name, tries, survived, ..
        } = &attack;
        let name = name.replace('|', "\\|");
        writeln!(table, "| {name} | {tries} | {survived} | {} |", attack.lost.len())?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attack_is_a_row_in_the_order_of_names() {
        let lines = r#"{"name":"links","tries":100,"survived":100,"lost":[]}
{"name":"a | b","tries":3,"survived":1,"lost":["try 1: x","try 3: y"]}
"#;
        let expected = "| attack | tries | survived | lost |\n|---|---|---|---|\n| a \\| b | 3 | 1 | 2 |\n\
                        | links | 100 | 100 | 0 |\n";
        assert_eq!(markdown(lines).unwrap(), expected);
        assert!(markdown("half a li").is_err());
    }

    #[test]
    fn no_results_are_an_empty_table() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(table(&dir.path().join("none")).unwrap().lines().count(), 2);
    }
}
