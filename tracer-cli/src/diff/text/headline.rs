//! The headline: what was compared, how much of it is there, and how differences were tested.

use std::collections::BTreeSet;
use std::io::{self, Write};

use tracer_core::{
    diff::{About, Diff, FigureDiff, Verdict},
    foreign::Terminal,
    units::duration,
    words::count,
};

use crate::{report::layout::Layout, units::known};

/// Columns of a label.
const LABEL: usize = 11;

/// Writes the headline.
pub fn write(out: &mut impl Write, diff: &Diff, layout: Layout) -> io::Result<()> {
    let mut text = Vec::new();
    let target = side(&mut text, "before", &diff.before, "")?;
    side(&mut text, "after", &diff.after, &target)?;
    let signs: BTreeSet<&str> = all(diff).filter_map(|about| about.simulated.as_deref()).collect();
    for sign in signs {
        writeln!(
            text,
            "simulated  {}: no number of it is from a real GPU",
            Terminal(sign)
        )?;
    }
    for note in &diff.notes {
        writeln!(text, "note       {}", Terminal(note))?;
    }
    differing(&mut text, diff)?;
    layout.labelled(out, &String::from_utf8_lossy(&text), LABEL)
}

fn all(diff: &Diff) -> impl Iterator<Item = &About> {
    diff.before.iter().chain(&diff.after)
}

/// Writes what the recordings of a side are. Returns their targets; those of the other side are not repeated.
fn side(out: &mut impl Write, label: &str, side: &[About], other: &str) -> io::Result<String> {
    let Some(first) = side.first() else {
        return Ok(String::new());
    };
    let of = |text: fn(&About) -> String| {
        let texts: BTreeSet<String> = side.iter().map(text).collect();
        texts.into_iter().collect::<Vec<_>>().join(" | ")
    };
    let target = of(|about| {
        let ended = about
            .ended
            .as_deref()
            .map_or_else(String::new, |ended| format!(" ({ended})"));
        format!("{}{ended}", Terminal(&about.target))
    });
    let shown = if target == other { "the same target" } else { &target };
    match side.len() as u64 {
        1 => writeln!(out, "{label:<10} {}: {shown}", Terminal(&first.trace))?,
        runs => writeln!(out, "{label:<10} {}: {shown}", count(runs, "run"))?,
    }
    let walls: Option<Vec<u64>> = side.iter().map(|about| about.wall_ns).collect();
    let wall = walls.and_then(|walls| Some((walls.iter().copied().min()?, walls.into_iter().max()?)));
    let wall = match wall {
        None => "an unknown time".to_owned(),
        Some((min, max)) if min == max => duration(min),
        Some((min, max)) => format!("{} to {}", duration(min), duration(max)),
    };
    let gpus = of(|about| Terminal(&about.gpus.join(" and ")).to_string());
    let gpus = if gpus.is_empty() { "no GPU".to_owned() } else { gpus };
    let host = of(|about| format!("{}, Linux {}", Terminal(&about.host), Terminal(&about.kernel)));
    writeln!(out, "           recorded {wall} on {gpus}, {host}")?;
    let losses: Option<u64> = side.iter().map(|about| about.losses).sum();
    let complete = side.iter().filter(|about| about.complete).count();
    let complete = match (complete, side.len()) {
        (complete, all) if complete == all => "yes".to_owned(),
        (_, 1) => "no".to_owned(),
        (complete, all) => format!("{complete} of {all}"),
    };
    let damaged: BTreeSet<&str> = side
        .iter()
        .flat_map(|about| &about.damaged)
        .map(String::as_str)
        .collect();
    let damaged: Vec<&str> = damaged.into_iter().collect();
    let damaged = match damaged.len() {
        0 => String::new(),
        _ => format!(", damaged tables: {}", damaged.join(", ")),
    };
    writeln!(out, "           losses {}, complete {complete}{damaged}", known(losses))?;
    Ok(target)
}

/// Writes how many figures differ, and how that was tested.
fn differing(out: &mut impl Write, diff: &Diff) -> io::Result<()> {
    let figures = || {
        diff.tables
            .iter()
            .flat_map(|table| &table.rows)
            .flat_map(|row| &row.figures)
    };
    let number = |is: &dyn Fn(&FigureDiff) -> bool| figures().filter(|figure| is(figure)).count() as u64;
    let of = |verdict: Verdict| number(&|figure| figure.verdict == verdict);
    let (differs, significant) = (of(Verdict::Differs), of(Verdict::Significant));
    let one_run = diff.before.len() + diff.after.len() == 2;
    let mut parts = vec![format!(
        "{}{}",
        count(differs, "count"),
        if one_run { "" } else { " in every run" }
    )];
    if diff.method.can_test() {
        parts.push(format!("{} significantly", count(significant, "figure")));
        parts.push(format!("{} perhaps by chance", of(Verdict::Unclear)));
    } else {
        parts.push(format!("{} without a verdict", of(Verdict::Untested)));
    }
    writeln!(out, "differ     {}; {} equal", parts.join(", "), of(Verdict::Equal))?;
    let (unknown, unsure) = (of(Verdict::Unknown), of(Verdict::Unsure));
    if unknown > 0 {
        writeln!(out, "unknown    {}, not compared", count(unknown, "figure"))?;
    }
    if unsure > 0 {
        writeln!(out, "unsure     {}: a trace is not whole", count(unsure, "figure"))?;
    }
    if diff.method.can_test() {
        let how = if diff.method.exact {
            "exact"
        } else {
            "by the normal distribution"
        };
        writeln!(
            out,
            "test       Mann-Whitney, two-sided, {how}; p corrected for all figures of a table \
             (Benjamini-Hochberg); significant: p at most {}",
            diff.method.alpha
        )?;
    }
    Ok(())
}
