//! A collector that answers as a test demands.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use prost::Message;
use tracer_otlp::{Origin, Target};

/// What the collector does with a connection.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Reads the request and answers this status with this type and body.
    Body(&'static str, &'static str, Vec<u8>),
    /// Reads the request, answers these bytes, and keeps the connection open until the other side closes it.
    Bytes(Vec<u8>),
    /// Reads the request, and keeps the connection open without an answer until the other side closes it.
    Never,
    /// Reads the request and closes the connection.
    Close,
}

/// The answer of a collector that takes everything.
pub fn ok() -> Answer {
    Answer::Body("200 OK", "application/x-protobuf", Vec::new())
}

/// A request.
#[derive(Debug)]
pub struct Got {
    /// The first line.
    pub line: String,
    /// The headers, with names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Got {
    /// Returns the only header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut of_name = self.headers.iter().filter(|(own, _)| own == name);
        let (_, value) = of_name.next()?;
        assert!(of_name.next().is_none(), "{name} is there twice");
        Some(value)
    }

    /// Returns the message.
    pub fn message(&self) -> ExportMetricsServiceRequest {
        ExportMetricsServiceRequest::decode(&self.body[..]).expect("a message")
    }
}

/// A collector, whose thread lives as long as the test.
#[derive(Debug)]
pub struct Collector {
    pub url: String,
    pub requests: Receiver<Got>,
}

impl Collector {
    /// Starts a collector. `answer` returns what to do with connection number n, from 0.
    pub fn start(answer: impl Fn(usize) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/base", listener.local_addr().expect("an address"));
        let (sender, requests) = channel();
        thread::spawn(move || {
            // One connection after the other: a second one at once would have to wait.
            for (number, stream) in listener.incoming().enumerate() {
                serve(&mut stream.expect("a connection"), &answer(number), &sender);
            }
        });
        Self { url, requests }
    }

    /// Returns the next request.
    pub fn next(&self) -> Got {
        self.requests.recv_timeout(Duration::from_secs(20)).expect("a request")
    }
}

fn serve(stream: &mut TcpStream, answer: &Answer, sender: &Sender<Got>) {
    let Some(got) = read(&mut BufReader::new(&*stream)) else {
        return;
    };
    // The test may be over.
    let _ = sender.send(got);
    let bytes = match answer {
        Answer::Body(status, kind, body) => {
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), body].concat()
        }
        Answer::Bytes(bytes) => bytes.clone(),
        Answer::Never => Vec::new(),
        Answer::Close => return,
    };
    // The other side may be gone.
    let _ = stream.write_all(&bytes);
    if matches!(answer, Answer::Never | Answer::Bytes(_)) {
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

fn read(stream: &mut impl BufRead) -> Option<Got> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|&read| read > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length?.1.parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    let line = line.trim_end().to_owned();
    Some(Got { line, headers, body })
}

/// A target with a short interval.
pub fn target(url: &str, interval_ms: u64) -> Target {
    Target::new(url, Duration::from_millis(interval_ms)).expect("a URL")
}

/// An origin.
pub fn origin() -> Origin {
    Origin {
        version: "1.2.3".to_owned(),
        host: "node1".to_owned(),
        instance: "node1:9478".to_owned(),
    }
}
