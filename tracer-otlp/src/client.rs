//! Sends one message, within limits on time and on what is read of the answer.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    header::{self, HeaderMap, HeaderValue},
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as Http, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message;
use rustls::{ClientConfig, crypto::ring};
use thiserror::Error;
use tokio::time::{Instant, timeout, timeout_at};
use tracer_core::{foreign, words::with_causes};

use crate::{error::TargetError, target::Target};

/// Why a collector did not take a message.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The collector cannot be reached, or closed the connection.
    #[error("{0}")]
    Connection(String),
    /// The collector did not answer in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// The collector refused the message.
    #[error("status {status}{}{text}", if text.is_empty() { "" } else { ": " })]
    Refused {
        /// The status.
        status: u16,
        /// What the collector says, escaped for one line; may be empty.
        text: String,
        /// How long the collector demands not to be asked.
        pause: Option<Duration>,
    },
}

/// What a collector says that took a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Number of points that it refused.
    pub refused: u64,
    /// What it says of them, escaped for one line.
    pub text: String,
}

/// Most bytes of an answer that are read, of its head and of its body.
const MOST: usize = 64 * 1024;
/// Maximum time from the head of an answer to the end of its body.
const FOR_BODY: Duration = Duration::from_secs(1);
/// Most characters that are shown of a text of the collector.
const SHOWN: usize = 200;
/// Longest pause that a collector can demand.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// The content type of a message and of an answer.
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// A client of one collector. It has no connection between two requests, and so holds no descriptor.
pub(crate) struct Client {
    http: Http<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Uri,
    headers: HeaderMap,
}

impl Client {
    /// Prepares a client. With `https`, it reads the certificates of the system unless the target has its own.
    pub(crate) fn new(target: &Target, user_agent: &str) -> Result<Self, TargetError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(target.limits.connect));
        let builder = HttpsConnectorBuilder::new();
        let provider = ring::default_provider();
        let is_https = target.url.scheme_str() == Some("https");
        let builder = match target.roots.clone().or((!is_https).then(rustls::RootCertStore::empty)) {
            Some(roots) => {
                let config = ClientConfig::builder_with_provider(provider.into());
                // ring has the ciphers of both versions.
                let config = config.with_safe_default_protocol_versions();
                let config = config.map_err(|error| TargetError::System(std::io::Error::other(error)))?;
                builder.with_tls_config(config.with_root_certificates(roots).with_no_client_auth())
            }
            None => builder
                .with_provider_and_native_roots(provider)
                .map_err(TargetError::System)?,
        };
        let http = Http::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .http1_max_buf_size(MOST)
            .build(builder.https_or_http().enable_http1().wrap_connector(tcp));
        let mut headers = HeaderMap::new();
        if let Ok(value) = user_agent.parse() {
            headers.insert(header::USER_AGENT, value);
        }
        headers.extend(target.headers.map().clone());
        headers.insert(header::CONTENT_TYPE, PROTOBUF);
        let url = target.url.clone();
        Ok(Self { http, url, headers })
    }

    /// Sends a message and reads the answer.
    pub(crate) async fn send(&self, message: Vec<u8>, limit: Duration) -> Result<Taken, Failure> {
        let answer = timeout(limit, self.exchange(message)).await;
        answer.unwrap_or(Err(Failure::Late(limit)))
    }

    async fn exchange(&self, message: Vec<u8>) -> Result<Taken, Failure> {
        let mut request = Request::new(Full::new(Bytes::from(message)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let response = self.http.request(request).await;
        let response = response.map_err(|error| Failure::Connection(shown(&with_causes(&error))))?;
        let (status, pause) = (response.status(), pause(&response));
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_protobuf = kind.is_some_and(|kind| kind.as_bytes().starts_with(PROTOBUF.as_bytes()));
        let body = read(response.into_body()).await;
        if status.is_success() {
            return Ok(taken(is_protobuf, &body));
        }
        Err(Failure::Refused {
            status: status.as_u16(),
            text: said(is_protobuf, &body),
            pause,
        })
    }
}

/// Returns the body as far as it comes in time, and at most [`MOST`] bytes of it. The status counts, not the end of the body.
async fn read(mut body: Incoming) -> Vec<u8> {
    let end = Instant::now() + FOR_BODY;
    let mut all = Vec::new();
    while let Ok(Some(Ok(frame))) = timeout_at(end, body.frame()).await {
        let Ok(data) = frame.into_data() else { break };
        let room = MOST - all.len();
        all.extend_from_slice(&data[..data.len().min(room)]);
        if all.len() == MOST {
            break;
        }
    }
    all
}

/// Returns how long the collector demands not to be asked, in the answer to too many requests.
fn pause(response: &Response<Incoming>) -> Option<Duration> {
    let demands = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&response.status());
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    let pause = Duration::from_secs(seconds.parse().ok()?);
    demands.then_some(pause.min(LONGEST_PAUSE))
}

fn taken(is_protobuf: bool, body: &[u8]) -> Taken {
    let answer = ExportMetricsServiceResponse::decode(body).ok();
    let partial = answer.filter(|_| is_protobuf).and_then(|answer| answer.partial_success);
    let partial = partial.unwrap_or_default();
    Taken {
        refused: u64::try_from(partial.rejected_data_points).unwrap_or(0),
        text: shown(&partial.error_message),
    }
}

/// `google.rpc.Status`, with which a collector explains a refusal. Nobody publishes it without a transport.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// Returns what the body of a refusal says, escaped.
fn said(is_protobuf: bool, body: &[u8]) -> String {
    match Status::decode(body) {
        Ok(status) if is_protobuf => shown(&status.message),
        _ => shown(&foreign::from_bytes(body)),
    }
}

/// Returns the beginning of a foreign text, escaped for one line.
fn shown(text: &str) -> String {
    let text = text.trim();
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "..." } else { "" };
    format!("{}{more}", foreign::line(start))
}
