//! `tracer serve --otlp`: pushes the metrics of the board to a collector.

use std::time::Duration;

use anyhow::Context;
use tracer_capture::kernel::descriptors;
use tracer_core::foreign;
use tracer_otlp::{Headers, Origin, Pusher, Target};
use tracer_serve::{Board, Server};

use crate::{cli::Otlp, say::say};

/// Descriptors that the thread needs at once, which probes must not take: its means to wait, a connection, and files of the
/// resolver.
const DESCRIPTORS: u64 = 8;

/// A push to a collector.
pub struct Push {
    pusher: Pusher,
    url: String,
}

/// Returns the collector that the user gave. Files that can't be read are reported here, before a command starts.
pub fn target(options: &Otlp) -> anyhow::Result<Option<Target>> {
    let Some(url) = &options.otlp else { return Ok(None) };
    let mut target = Target::new(url, Duration::from_secs(options.otlp_interval))?;
    if let Some(file) = &options.otlp_headers_file {
        target = target.with_headers(Headers::read(file)?);
    }
    if let Some(file) = &options.otlp_ca_file {
        target = target.with_ca_file(file)?;
    }
    descriptors::reserve(DESCRIPTORS);
    Ok(Some(target))
}

impl Push {
    /// Starts to push what the board has.
    pub fn start(target: &Target, board: &Board, server: &Server) -> anyhow::Result<Self> {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let origin = Origin {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // As a scraper that calls the server by the name of its machine.
            instance: format!("{host}:{}", server.port()),
            host,
        };
        let board = board.clone();
        let pusher = Pusher::start(target, origin, move || board.families())?;
        let url = target.url();
        say!("pushing    to {}", foreign::line(&url));
        Ok(Self { pusher, url })
    }

    /// Pushes the last values, waits a few seconds at most, and says what was pushed. A failure does not change the exit status.
    pub async fn finish(self) -> anyhow::Result<()> {
        let Self { pusher, url } = self;
        let url = foreign::line(url);
        let finished = tokio::task::spawn_blocking(move || pusher.finish()).await;
        let Some(counts) = finished.context("the end of the pushes")? else {
            log::warn!("{url} may miss the last values: the last push did not end");
            return Ok(());
        };
        let all = counts.taken + counts.failed;
        say!("pushed     {} of {all} messages to {url}", counts.taken);
        if counts.refused_points > 0 {
            log::warn!("{url} refused {} points of the metrics", counts.refused_points);
        }
        if !counts.has_last {
            log::warn!("{url} misses the last values: the last push failed");
        }
        Ok(())
    }
}
