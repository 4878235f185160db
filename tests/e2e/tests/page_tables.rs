//! The tables of the page of `tracer serve`: they show the data that the page got, in the units and words of the other commands.

use tracer_core::{live, units, words::Named};
use tracer_e2e::{
    scenario::{Scenario, folder},
    truth::Truth,
};

use crate::{
    page::{Served, rows, total},
    serve::serve,
};

/// Formats a value that may be unknown.
fn known<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "?".to_owned(), text)
}

/// The tables of API calls, copies, ioctls and processes show the data that they got, and that is what the program and the device did.
#[test]
fn the_tables_of_the_page_are_its_data() {
    let dir = folder();
    let scenario = Scenario::hip("trixie", "gfx1100", &["mixed"]);
    let mut command = serve(&["--stay", "--api", "all", "--"]);
    command.args(scenario.simulated(dir.path()));
    let served = Served::of(command, dir.path());
    served.hears("ended      ");
    let picture: live::Picture = serde_json::from_value(served.live()).expect("a picture");
    let seen = served.open(dir.path(), None);
    assert!(seen.console.is_empty(), "{:#?}", seen.console);
    assert_eq!(
        total(&seen, "API calls since the start"),
        picture.totals.api_calls.expect("they are watched")
    );
    // The page shows this many rows of a table, and how many more there are. Below them are the reasons of unknown values.
    let first = |mut rows: Vec<Vec<String>>| {
        let more = rows.len().saturating_sub(15);
        rows.truncate(15);
        rows.extend((more > 0).then(|| vec![format!("and {more} more")]));
        rows
    };
    let shown = |table: &str| -> Vec<Vec<String>> {
        let rows = rows(&seen, table).into_iter().filter(|(class, _)| *class != "none");
        rows.map(|(_, cells)| cells.into_iter().map(str::to_owned).collect())
            .collect()
    };
    let times = |ns: Option<(u64, u64)>| [ns.map(|ns| ns.0), ns.map(|ns| ns.1)].map(|ns| known(ns, units::duration));
    // The capture has ended: the data does not change any more.
    let api = picture.api.iter().map(|f| {
        let [p50, p99] = times(f.ns);
        vec![
            f.function.clone(),
            f.layer.clone(),
            units::count(f.count),
            known(f.per_s, units::rate),
            known(f.total_ns, units::duration),
            known(f.mean_ns, units::duration),
            p50,
            p99,
            units::count(f.errors),
            units::count(f.unreturned),
        ]
    });
    let api: Vec<Vec<String>> = api.collect();
    assert!(api.len() > 5, "{api:?}");
    assert_eq!(shown("api"), first(api));
    let copies = picture.copies.iter().map(|c| {
        let none = c.op.is_some_and(|op| op.name() == "none");
        let direction = if none {
            "-".to_owned()
        } else {
            known(c.direction, |d| d.name().to_owned())
        };
        let more = if c.unknown > 0 { "+?" } else { "" };
        vec![
            direction,
            known(c.op, |op| op.name().to_owned()),
            known(c.by, |by| by.name().to_owned()) + &c.engine.map_or_else(String::new, |n| format!(" {n}")),
            c.path.name().to_owned(),
            units::count(c.count),
            units::rate(c.per_s),
            known(c.bytes, |n| units::bytes(n) + more),
            known(c.bytes_per_s, |n| format!("{}/s", units::bytes(n.round() as u64))),
            units::count(c.unknown),
        ]
    });
    let copies: Vec<Vec<String>> = copies.collect();
    assert!(!copies.is_empty());
    assert_eq!(shown("copies"), first(copies));
    let mut ioctls = picture.ioctls.clone();
    ioctls.sort_by_key(|ioctl| std::cmp::Reverse(ioctl.count));
    let ioctls = ioctls.into_iter().map(|i| {
        let [p50, p99] = times(i.ns);
        let [count, errors] = [i.count, i.errors].map(units::count);
        vec![i.name, i.device, count, units::rate(i.per_s), errors, p50, p99]
    });
    let ioctls: Vec<Vec<String>> = ioctls.collect();
    assert_eq!(shown("ioctls"), first(ioctls.clone()));
    let truth = Truth::read(&dir.path().join("truth.jsonl"));
    let creations = truth
        .ioctls
        .iter()
        .filter(|ioctl| ioctl.name.as_deref() == Some("CREATE_QUEUE"));
    let creations = creations.count().to_string();
    assert!(
        ioctls
            .iter()
            .any(|cells| cells[0] == "CREATE_QUEUE" && cells[2] == creations)
    );
    // A simulated GPU has no driver with rings: nobody knows what is on them.
    let rings = rows(&seen, "rings");
    let [("none", ring)] = &rings[..] else {
        panic!("{rings:?}")
    };
    assert!(ring[0].starts_with("? not watched: "), "{ring:?}");
}
