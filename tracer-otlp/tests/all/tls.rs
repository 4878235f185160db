//! A collector with TLS, whose certificate only a given file knows.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, Stream,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tracer_otlp::{Pusher, Target, TargetError};

use crate::collector::origin;

#[test]
fn a_certificate_of_the_given_file_is_accepted_and_no_other() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = Stream::new(&mut connection, &mut stream);
            // A client that does not accept the certificate closes the connection.
            if tls.read(&mut [0; 64 * 1024]).is_ok_and(|read| read > 0) {
                let _ = tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    for (certificate, taken) in [(&own, 1), (&other, 0)] {
        fs::write(&file, certificate.cert.pem()).unwrap();
        let target = Target::new(&url, Duration::from_secs(3_600)).unwrap();
        let target = target.with_ca_file(&file).unwrap();
        let counts = Pusher::start(&target, origin(), Vec::new).unwrap().finish().unwrap();
        assert_eq!((counts.taken, counts.failed), (taken, 1 - taken));
    }
    fs::write(&file, "no certificate").unwrap();
    let target = || Target::new(&url, Duration::from_secs(15)).unwrap();
    let error = target().with_ca_file(&file).unwrap_err();
    assert!(matches!(error, TargetError::NoCertificate(_)), "{error}");
    let error = target().with_ca_file(&folder.path().join("none")).unwrap_err();
    assert!(matches!(error, TargetError::Unreadable { .. }), "{error}");
}
