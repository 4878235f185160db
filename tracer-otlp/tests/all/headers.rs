//! The URL and the headers that a user gives.

use std::{fs, path::PathBuf, time::Duration};

use tracer_otlp::{Headers, Pusher, Target, TargetError};

use crate::collector::{Collector, ok, origin, target};

/// A file with that content, in a folder that is removed with the first value.
fn file(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("headers");
    fs::write(&path, content).expect("it can be written");
    (folder, path)
}

#[test]
fn headers_come_from_a_file() {
    let (_folder, path) = file("# a comment\n\nAuthorization: Bearer a:b c\r\n X-Scope-OrgID :  7 \n");
    assert!(Headers::read(&path).is_err(), "a name has no space");
    fs::write(
        &path,
        "# a comment\n\nAuthorization: Bearer a:b c\r\n X-Scope-OrgID:  7 \n",
    )
    .unwrap();
    let headers = Headers::read(&path).unwrap();
    assert_eq!(format!("{headers:?}"), "Headers(..)");
    let collector = Collector::start(|_| ok());
    let target = target(&collector.url, 3_600_000).with_headers(headers);
    assert!(!format!("{target:?}").contains("a:b"), "{target:?}");
    let pusher = Pusher::start(&target, origin(), Vec::new).unwrap();
    assert_eq!(pusher.finish().unwrap().taken, 1);
    let got = collector.next();
    assert_eq!(got.header("authorization"), Some("Bearer a:b c"));
    assert_eq!(got.header("x-scope-orgid"), Some("7"));
    assert_eq!(got.header("content-type"), Some("application/x-protobuf"));
}

#[test]
fn a_wrong_file_of_headers_is_not_shown() {
    let lines = [
        "secret",
        "sec ret: x",
        "Authorization: secret\x01",
        "Content-Type: secret",
        "Host: secret",
        "content-length: 7",
    ];
    for wrong in lines {
        let (_folder, path) = file(format!("A: b\n{wrong}\n"));
        let error = Headers::read(&path).unwrap_err();
        assert!(matches!(error, TargetError::Header { line: 2, .. }), "{wrong}: {error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
    let (folder, path) = file(vec![b'a'; 70_000]);
    let error = Headers::read(&path).unwrap_err();
    assert!(error.to_string().ends_with("file too large"), "{error}");
    assert!(Headers::read(&folder.path().join("none")).is_err());
    // A file without end is read to the limit.
    assert!(Headers::read("/dev/zero".as_ref()).is_err());
}

#[test]
fn a_url_is_one_of_a_collector() {
    let url = |text: &str| Target::new(text, Duration::from_secs(15)).map(|target| target.url());
    for (text, whole) in [
        ("http://localhost:4318", "http://localhost:4318/v1/metrics"),
        ("https://[::1]:4318/", "https://[::1]:4318/v1/metrics"),
        ("http://host/api/v1/otlp//", "http://host/api/v1/otlp/v1/metrics"),
    ] {
        assert_eq!(url(text).unwrap(), whole);
    }
    for wrong in [
        "",
        "host",
        "host:4318",
        "/path",
        "ftp://host",
        "http://",
        "http://h/?a=b",
        "http://h/#a",
        "http://h h",
    ] {
        assert!(matches!(url(wrong), Err(TargetError::Url)), "{wrong}: {:?}", url(wrong));
    }
    let error = url("http://user:secret@host").unwrap_err();
    assert!(matches!(error, TargetError::Secret), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
