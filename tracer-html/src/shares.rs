//! Which part of the kernels took which path, and what moved the copies.

use maud::{Markup, html};
use tracer_core::{
    plots::{Figures, Moved, Mover},
    summary::{Capabilities, Report},
    tables::Path,
    units::{self, bytes},
    words::Named,
};

use crate::axis::{part, percent};

/// A part of a bar.
struct Share {
    class: &'static str,
    name: String,
    /// `None`: unknown.
    count: Option<u64>,
    /// What is known beside the count.
    more: String,
}

/// Draws both bars; of some kernels, the first one.
pub(crate) fn section(figures: &Figures, report: &Report, watched: &Capabilities, is_of_kernels: bool) -> Markup {
    let kernels = Path::ALL.map(|path| of_path(path, figures, report, watched));
    let copies: Vec<Share> = figures.copies.iter().map(of_mover).collect();
    html! {
        section #paths {
            h2 { "Paths" }
            div .pair {
                figure {
                    figcaption { b { "Kernels, by path" } }
                    (bar("kernels", "Path", &kernels))
                }
                @if !is_of_kernels {
                    figure {
                        figcaption { b { "Copies and fills, by what moved the bytes" } }
                        @if !copies.is_empty() {
                            (bar("copies", "Mover", &copies))
                        } @else if watched.sdma_doorbells {
                            p .why { "There was none." }
                        } @else {
                            p .why { "Unknown: doorbells of SDMA queues were not watched." }
                        }
                    }
                }
            }
        }
    }
}

fn of_path(path: Path, figures: &Figures, report: &Report, watched: &Capabilities) -> Share {
    let seen = figures.by_path[path as usize];
    let of_report = report.dispatches.by_path.each();
    let is_known = of_report.iter().any(|(of, count)| *of == path && count.is_some());
    let (class, is_watched) = match path {
        Path::Doorbell => ("dispatches", watched.packets),
        Path::Ring => ("jobs", watched.kernel_rings),
        Path::Thunk => ("copies", watched.thunk),
        Path::Unseen => ("lost", watched.unseen),
    };
    let more = match (is_known, seen) {
        (true, _) => String::new(),
        (false, 0) if is_watched => "unknown".to_owned(),
        (false, 0) => "not watched".to_owned(),
        (false, seen) => format!("unknown, {seen} seen"),
    };
    Share {
        class,
        name: path.name().to_owned(),
        count: is_known.then_some(seen),
        more,
    }
}

fn of_mover(moved: &Moved) -> Share {
    let (class, name) = match moved.by {
        Some(Mover::Engine(engine)) => ("copies", format!("SDMA engine {engine}")),
        Some(Mover::AnyEngine) => ("copies", "SDMA, engine chosen by the driver".to_owned()),
        Some(Mover::Kernel) => ("dispatches", "kernels, which are dispatches, too".to_owned()),
        None => ("packets", "other SDMA engines".to_owned()),
    };
    let more = match moved.unknown {
        0 => bytes(moved.bytes),
        all if all == moved.count => "of unknown size".to_owned(),
        some => format!("{}, and {some} of unknown size", bytes(moved.bytes)),
    };
    Share {
        class,
        name,
        count: Some(moved.count),
        more,
    }
}

/// Draws a bar of the known counts, and a table of all.
fn bar(id: &str, what: &str, shares: &[Share]) -> Markup {
    let counts = shares.iter().filter_map(|share| share.count);
    let total = counts.fold(0, u64::saturating_add);
    let mut end = 0.0;
    let mut places = Vec::new();
    for share in shares {
        let width = part(share.count.unwrap_or(0), total);
        places.push((share, end, width));
        end += width;
    }
    html! {
        svg .share role="img" aria-label="The table below has the numbers." {
            @for (share, from, width) in places.into_iter().filter(|(_, _, width)| *width > 0.0) {
                rect class=(share.class) x=(percent(from)) width=(percent(width)) height="100%" {
                    title { (share.name) ": " (share.count.unwrap_or(0)) }
                }
            }
        }
        table #{ "share-" (id) } {
            thead { tr { th scope="col" .text { (what) } th scope="col" { "Count" } th scope="col" { "Share" } th scope="col" .text {} } }
            tbody { @for share in shares { tr {
                td .text {
                    svg .key aria-hidden="true" { rect class=(share.class) width="100%" height="100%" {} }
                    (share.name)
                }
                td { @match share.count { Some(count) => (count), None => "?" } }
                td { (share.count.and_then(|count| units::share(count, total)).unwrap_or_else(|| "–".to_owned())) }
                td .text { (share.more) }
            } } }
        }
    }
}
