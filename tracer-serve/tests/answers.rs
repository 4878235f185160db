//! A real server on loopback, asked over real connections.

#![expect(clippy::unwrap_used, reason = "a test fails by it, with the line")]

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    thread,
};

use tempfile::TempDir;
use tracer_core::{
    fact::{Fact, Loss},
    metrics::About,
};
use tracer_serve::{Board, Listen, Server, Tls, Token};

/// The clock of these tests, ns.
const NOW: u64 = 100_000_000_000;
const SECRET: &str = "a secret that is long enough";

fn board() -> Board {
    let board = Board::new(About {
        version: "0.1.0".to_owned(),
        simulated: true,
        watched: vec![("doorbells", true), ("thunk", false)],
        loss_sources: vec!["doorbell-ring"],
    });
    board.take(&Fact::Loss(Loss {
        time_ns: NOW,
        source: "with \"quotes\" and \\".to_owned(),
        count: 3,
    }));
    board
}

/// Runs a server while `ask` asks it.
fn serving(board: &Board, token: Option<Token>, tls: Option<Tls>, ask: impl FnOnce(&str)) {
    let listen = Listen::new("127.0.0.1:0".parse().unwrap(), token, tls).unwrap();
    let server = Server::bind(listen).unwrap();
    let (url, stop) = (server.url(), server.stopper());
    let board = board.clone();
    let running = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(server.run(board, || NOW))
    });
    ask(url.split("://").nth(1).unwrap());
    stop();
    running.join().unwrap().unwrap();
}

fn request(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: here\r\n{headers}Connection: close\r\n\r\n")
}

/// Head and body of the answer.
fn get(address: &str, path: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request(path, headers).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn metrics_are_openmetrics_text() {
    serving(&board(), None, None, |address| {
        let (head, body) = get(address, "/metrics", "");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("application/openmetrics-text"), "{head}");
        for line in [
            "# TYPE tracer_events_lost counter",
            "tracer_events_lost_total{source=\"doorbell-ring\"} 0",
            "tracer_events_lost_total{source=\"with \\\"quotes\\\" and \\\\\"} 3",
            "tracer_watched{what=\"doorbells\"} 1",
            "tracer_watched{what=\"thunk\"} 0",
            "tracer_build_info{version=\"0.1.0\",simulated=\"true\"} 1",
        ] {
            assert!(body.lines().any(|have| have == line), "no {line} in\n{body}");
        }
        assert!(body.ends_with("# EOF\n"), "{body}");
    });
}

#[test]
fn the_page_runs_nothing_from_elsewhere_and_its_data_is_json() {
    serving(&board(), None, None, |address| {
        let (head, body) = get(address, "/", "");
        assert!(head.contains("default-src 'none'"), "{head}");
        assert!(body.starts_with("<!doctype html>"));
        assert!(!body.contains(" src=") && !body.contains("href=\"http") && !body.contains("@import"));
        let (_, body) = get(address, "/api/live", "");
        let live: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(live["simulated"], true);
        assert_eq!(live["not_watched"], serde_json::json!(["thunk"]));
        assert_eq!(live["losses"][0]["count"], 3);
        assert!(get(address, "/other", "").0.starts_with("HTTP/1.1 404"));
    });
}

#[test]
fn health_follows_the_capture() {
    let board = board();
    serving(&board, None, None, |address| {
        let health = || get(address, "/healthz", "");
        assert!(health().0.starts_with("HTTP/1.1 503"), "capture was never heard of");
        board.advance(NOW - 1, None);
        assert!(health().0.starts_with("HTTP/1.1 200"));
        board.end();
        let (head, body) = health();
        assert!(
            head.starts_with("HTTP/1.1 503") && body.contains("ended"),
            "{head} {body}"
        );
    });
}

#[test]
fn who_has_no_token_hears_nothing_but_health() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let token = Token::read(&file).unwrap();
    serving(&board(), Some(token), None, |address| {
        for path in ["/", "/metrics", "/api/live"] {
            assert!(get(address, path, "").0.starts_with("HTTP/1.1 401"), "{path}");
            let wrong = get(address, path, "Authorization: Bearer a secret that is long enougH\r\n");
            assert!(wrong.0.starts_with("HTTP/1.1 401"), "{path}");
            let right = get(address, path, &format!("Authorization: Bearer {SECRET}\r\n"));
            assert!(right.0.starts_with("HTTP/1.1 200"), "{path}");
        }
        assert!(!get(address, "/healthz", "").0.contains("401"));
    });
    std::fs::write(&file, "short\n").unwrap();
    let error = Token::read(&file).unwrap_err().to_string();
    assert!(error.contains("at least 16 characters"), "{error}");
}

#[test]
fn tls_answers_over_tls_only() {
    let dir = TempDir::new().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls {
        certificate: dir.path().join("cert.pem"),
        key: dir.path().join("key.pem"),
    };
    std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    serving(&board(), None, Some(tls), |address| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = rustls::StreamOwned::new(client, TcpStream::connect(address).unwrap());
        stream.write_all(request("/metrics", "").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("# EOF"),
            "{answer}"
        );
        let mut plain = TcpStream::connect(address).unwrap();
        plain.write_all(request("/metrics", "").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    });
}

#[test]
fn a_bad_certificate_is_an_error_with_its_name() {
    let dir = TempDir::new().unwrap();
    let tls = Tls {
        certificate: dir.path().join("cert.pem"),
        key: dir.path().join("key.pem"),
    };
    let listen = Listen::new("127.0.0.1:0".parse().unwrap(), None, Some(tls)).unwrap();
    let server = Server::bind(listen).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let error = runtime.block_on(server.run(board(), || NOW)).unwrap_err().to_string();
    assert!(error.contains("cert.pem"), "{error}");
}

#[test]
fn an_address_that_is_taken_is_an_error_that_names_the_fix() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = Listen::new(taken.local_addr().unwrap(), None, None).unwrap();
    let error = Server::bind(listen).unwrap_err().to_string();
    assert!(error.contains("--listen"), "{error}");
}
