//! Own time by layer, as bars.

use maud::{Markup, html};
use tracer_core::{
    analysis::{Answers, Layer},
    foreign::line,
    units::{duration, share},
};

use crate::axis::{part, percent};

/// Draws a bar for each layer. `is_api` says whether API calls were recorded one by one.
pub(crate) fn section(answers: &Answers, is_api: bool) -> Markup {
    let layers = &answers.layers;
    let total = layers.iter().map(|layer| layer.own_ns).fold(0, u64::saturating_add);
    let most = layers.iter().map(|layer| layer.own_ns).max().unwrap_or_default();
    html! {
        section #layers {
            h2 { "Time by layer" }
            @if layers.is_empty() {
                p .why { "Unknown: neither API calls nor ioctls were recorded." }
            } @else {
                p .note {
                    "Own time: without the recorded calls and ioctls inside, summed over threads, probes included."
                    @if !is_api { " API calls were not recorded (record --api all), so only ioctls are here." }
                }
                table .bars {
                    tbody { @for layer in layers { tr {
                        th scope="row" .text { (line(layer.title())) }
                        td .bar { svg aria-hidden="true" {
                            rect class=(class(layer)) width=(percent(part(layer.own_ns, most).max(0.002))) height="100%" {}
                        } }
                        td data-layer=(line(layer.title())) data-own=(layer.own_ns) { (duration(layer.own_ns)) }
                        td { (share(layer.own_ns, total).unwrap_or_else(|| "–".to_owned())) }
                    } } }
                }
            }
        }
    }
}

fn class(layer: &Layer) -> &'static str {
    match &*layer.layer {
        "ioctl" => "jobs",
        "hsa" => "copies",
        _ => "dispatches",
    }
}
