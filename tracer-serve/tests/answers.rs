//! Tests of a real server on loopback, over real connections.

#![expect(clippy::unwrap_used, reason = "a test fails by it, with the line")]

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tracer_core::{
    live::Capture,
    metrics::About,
    summary::Capabilities,
    tables::{Fact, Loss},
};
use tracer_serve::{Board, Limits, Listen, Server, Tls, Token};

/// The clock of these tests, ns.
const NOW: u64 = 100_000_000_000;
const SECRET: &str = "a secret that is long enough";

fn board() -> Board {
    let board = Board::new(About {
        version: "0.1.0".to_owned(),
        loss_sources: vec!["doorbell-ring"],
    });
    board.set_capture(Capture {
        watched: Capabilities {
            doorbells: true,
            packets: true,
            ..Capabilities::default()
        },
        simulated: Some("a sign".to_owned()),
        ..Capture::default()
    });
    board.take(&Fact::Loss(Loss {
        time_ns: NOW,
        source: "with \"quotes\" and \\".to_owned(),
        count: 3,
    }));
    board
}

/// Runs a server while `ask` sends requests to it.
fn serving(board: &Board, token: Option<Token>, tls: Option<Tls>, ask: impl FnOnce(&str)) {
    serving_as(
        board,
        Listen::new("127.0.0.1:0".parse().unwrap(), token, tls).unwrap(),
        ask,
    );
}

/// Runs a server with these listener options while `ask` sends requests to it.
fn serving_as(board: &Board, listen: Listen, ask: impl FnOnce(&str)) {
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

fn request(host: &str, path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n")
}

/// Returns the head and the body of the answer.
fn get(address: &str, path: &str, headers: &str) -> (String, String) {
    get_as(address, address, path, headers)
}

/// Returns the head and the body of the answer to a request that calls the server by another name.
fn get_as(address: &str, host: &str, path: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request(host, path, headers).as_bytes()).unwrap();
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
        assert_eq!(
            (&live["simulated"], &live["complete"]),
            (&"a sign".into(), &false.into())
        );
        assert_eq!(
            (&live["watched"]["doorbells"], &live["watched"]["thunk"]),
            (&true.into(), &false.into())
        );
        // What is not watched has no number. No process has submitted anything that a thunk could have passed on.
        let paths = serde_json::json!({ "doorbell": 0, "ring": null, "thunk": 0, "unseen": null });
        assert_eq!(live["totals"]["by_path"], paths);
        assert_eq!(
            (&live["totals"]["doorbells"], &live["totals"]["copies"]),
            (&0.into(), &serde_json::Value::Null)
        );
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
        stream.write_all(request(address, "/metrics", "").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("# EOF"),
            "{answer}"
        );
        let mut plain = TcpStream::connect(address).unwrap();
        plain.write_all(request(address, "/metrics", "").as_bytes()).unwrap();
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

#[test]
fn a_foreign_name_is_refused_where_nothing_else_keeps_pages_away() {
    serving(&board(), None, None, |address| {
        for path in ["/", "/metrics", "/api/live"] {
            for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
                let (head, body) = get_as(address, host, path, "");
                assert!(head.starts_with("HTTP/1.1 421"), "{host} {path}: {head}");
                assert!(body.contains("--host"), "{body}");
            }
            for host in ["localhost:1", "[::1]:1", address] {
                assert!(
                    get_as(address, host, path, "").0.starts_with("HTTP/1.1 200"),
                    "{host} {path}"
                );
            }
        }
        assert!(
            get_as(address, "evil.example", "/healthz", "")
                .0
                .starts_with("HTTP/1.1 503")
        );
    });
    let named = Listen::new("127.0.0.1:0".parse().unwrap(), None, None).unwrap();
    serving_as(&board(), named.with_hosts(vec!["gpu.example".to_owned()]), |address| {
        assert!(
            get_as(address, "gpu.example:9478", "/api/live", "")
                .0
                .starts_with("HTTP/1.1 200")
        );
        assert!(
            get_as(address, "evil.example", "/api/live", "")
                .0
                .starts_with("HTTP/1.1 421")
        );
    });
    // A foreign page has no token.
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, SECRET).unwrap();
    serving(&board(), Some(Token::read(&file).unwrap()), None, |address| {
        let with = format!("Authorization: Bearer {SECRET}\r\n");
        assert!(
            get_as(address, "gpu.example", "/metrics", &with)
                .0
                .starts_with("HTTP/1.1 200")
        );
    });
}

/// Counts the open descriptors of this process that are sockets: both ends of each connection, and the listener.
fn sockets() -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_socket = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    descriptors.filter(is_socket).count()
}

#[test]
fn idle_connections_take_no_more_places_than_there_are() {
    let listen = Listen::new("127.0.0.1:0".parse().unwrap(), None, None).unwrap();
    let limits = Limits {
        connections: 8,
        ..Limits::default()
    };
    serving_as(&board(), listen.with_limits(limits), |address| {
        let before = sockets();
        let idle: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
        // The server answers although all idle connections came first and stay: it closed the oldest ones.
        assert!(get(address, "/metrics", "").0.starts_with("HTTP/1.1 200"));
        let theirs = sockets() - before - idle.len();
        // The runtime has some sockets of its own.
        assert!(theirs <= 2 * limits.connections, "{theirs} descriptors");
        let mut first = &idle[0];
        assert_eq!(first.read(&mut [0]).unwrap_or(0), 0, "the oldest one is closed");
    });
}

/// Reads until the server closes the connection.
fn to_the_end(mut stream: &TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn slow_heads_and_silent_clients_are_dropped() {
    let listen = || Listen::new("127.0.0.1:0".parse().unwrap(), None, None).unwrap();
    let day = Duration::from_secs(86_400);
    let moment = Duration::from_millis(200);
    let slow = Limits {
        head: moment,
        silence: day,
        ..Limits::default()
    };
    serving_as(&board(), listen().with_limits(slow), |address| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: local").unwrap();
        let answer = to_the_end(&stream);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
        // The same holds for an idle connection after an answer.
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        assert!(to_the_end(&stream).starts_with(b"HTTP/1.1 200"));
    });
    let silent = Limits {
        head: day,
        silence: moment,
        ..Limits::default()
    };
    serving_as(&board(), listen().with_limits(silent), |address| {
        assert_eq!(to_the_end(&TcpStream::connect(address).unwrap()), b"");
    });
}
