//! `tracer serve`: serves live values over HTTP while it watches a command, running processes or all processes.

#[cfg(feature = "otlp")]
mod push;

use std::{future::Future, process::ExitCode};

use anyhow::Context;
use tracer_capture::{
    inventory::Inventory, kernel::descriptors, pause::guardian::Guardian, sys, target::launch::Terminal,
};
use tracer_core::{foreign, losses, metrics::About, tables::Fact};
use tracer_serve::{Board, Limits, Listen, Server, Tls, Token};

use crate::{
    cli::Serve,
    collect::{Collector, Sink},
    exit,
    record::manifest,
    say::say,
    signals::{self, Signals, Wish},
    target::{Ending, Ready, Subject, Watched},
};

/// The sink.
struct Feed {
    board: Board,
    /// The current description of the capture, until it has been passed to the board.
    about: Option<About>,
    /// Number of warnings that were reported.
    warned: usize,
}

/// Returns the limits on connections. There are few enough that capture has most of the file descriptors. Capture may take its
/// share now, but none of the descriptors that are reserved for connections.
fn limits() -> Limits {
    let usual = Limits::default();
    descriptors::allow_all();
    let share = usize::try_from(descriptors::limit() / 8).unwrap_or(usize::MAX);
    let connections = usual.connections.min(share);
    descriptors::reserve(connections as u64);
    Limits { connections, ..usual }
}

impl Sink for Feed {
    fn take(&mut self, fact: &Fact) {
        self.board.take(fact);
    }

    fn snapshot(&mut self, fact: &Fact) {
        self.board.take(fact);
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        self.board.advance(sys::monotonic_ns(), self.about.take());
        Ok(())
    }

    fn describe(&mut self, inventory: &Inventory) {
        self.board.set_gpus(manifest::gpus(&manifest::devices(inventory)));
        self.board.set_capture(manifest::capture(inventory));
        self.about = Some(about(inventory));
        // A service has no end at which a user would read the warnings.
        for warning in inventory.warnings.iter().skip(self.warned) {
            log::warn!("{warning}");
        }
        self.warned = self.warned.max(inventory.warnings.len());
    }
}

fn about(inventory: &Inventory) -> About {
    About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        loss_sources: losses::counted(inventory.backend, |family| inventory.has(family)),
    }
}

/// Answers requests until the watched processes have exited, or with `--stay` until the user stops the server.
pub fn run(options: &Serve, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    signals::block_on(serve(options, guardian))
}

async fn serve(options: &Serve, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    // The signal handlers come first: the command inherits none of them, and no signal arrives before the server is prepared.
    let mut signals = Signals::new()?;
    // An address that is not available is reported before the command starts.
    let token = options.token_file.as_deref().map(Token::read).transpose()?;
    let tls = options.tls_cert.clone().zip(options.tls_key.clone());
    let tls = tls.map(|(certificate, key)| Tls { certificate, key });
    let listen = Listen::new(options.listen, token, tls)?.with_hosts(options.host.clone());
    let server = Server::bind(listen.with_limits(limits()))?;
    #[cfg(feature = "otlp")]
    let target = push::target(&options.otlp)?;
    let ready = Ready::prepare(&options.capture, &options.command, Terminal::Shared, guardian)?;
    ready.announce();
    let board = Board::new(about(&ready.session.inventory()));
    board.advance(sys::monotonic_ns(), None);
    say!("serving    {} until {}", server.url(), until(options, &ready.subject));
    #[cfg(feature = "otlp")]
    let push = target
        .map(|target| push::Push::start(&target, &board, &server))
        .transpose()?;
    let feed = Feed {
        board: board.clone(),
        about: None,
        warned: 0,
    };
    let collector = Collector::start(ready.session, feed, &ready.there)?;
    let stop = server.stopper();
    let answering = tokio::spawn(server.run(board.clone(), sys::monotonic_ns));
    tokio::pin!(answering);
    let ended = match ready.start.go() {
        Ok(watched) => watch(watched, &mut answering, &mut signals).await,
        Err(error) => Err(error),
    };
    let (mut feed, inventory) = collector.finish()?;
    feed.describe(&inventory);
    feed.tick()?;
    board.end();
    let ended = ended?;
    let code = match &ended {
        Some(ending) => ending.status.map_or(0, exit::of_status),
        // A command that continues has no status to report. Processes that were already running do not belong to the server.
        None if options.command.is_empty() => 0,
        None => exit::FORCED,
    };
    // A user who did not wait for the exit does not want the server to stay after it, either.
    if options.stay && ended.is_some() {
        say!("ended      all traced processes have exited; the values stay until Ctrl-C");
        signals.next(None).await;
    }
    #[cfg(feature = "otlp")]
    if let Some(push) = push {
        push.finish().await?;
    }
    stop();
    answering.await.context("the server's task")??;
    Ok(ExitCode::from(code))
}

fn until(options: &Serve, subject: &Subject) -> String {
    if options.stay || options.capture.all {
        "Ctrl-C".to_owned()
    } else {
        format!("{} ends", foreign::line(&subject.title))
    }
}

/// Waits until the watched processes have exited, or until the user stops the server (`None`). A failure of the server is an error.
async fn watch<E>(
    mut watched: Watched,
    answering: &mut (impl Future<Output = Result<Result<(), E>, tokio::task::JoinError>> + Unpin),
    signals: &mut Signals,
) -> anyhow::Result<Option<Ending>>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let command = watched.command();
    let ended = watched.end();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            ending = &mut ended => return ending.map(Some),
            failed = &mut *answering => {
                failed.context("the server's task")??;
                anyhow::bail!("the server stopped unexpectedly");
            }
            wish = signals.next(command.as_deref()) => if wish == Wish::Force { return Ok(None) },
        }
    }
}
