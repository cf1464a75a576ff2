// SPDX-License-Identifier: Apache-2.0

//! The members of an error.

use std::error::Error as _;

use fletching::{ArrayStream, Error, Options, SchemaBuilder};

#[test]
fn error_has_code_message_and_source() {
    let error = Error::new(libc::ENOSPC, "disk full");
    assert_eq!((error.code(), error.message()), (libc::ENOSPC, "disk full"));
    assert_eq!(error.to_string(), "disk full");
    assert!(error.source().is_none());
    for code in [0, -1, i32::MIN] {
        assert_eq!(Error::new(code, "").code(), libc::EIO);
    }
    let caused = Error::with_source(libc::EINVAL, "no", error);
    assert_eq!((caused.code(), caused.message()), (libc::EINVAL, "no"));
    assert_eq!(caused.clone().source().unwrap().to_string(), "disk full");
    assert_eq!(Error::with_source(0, "no", "a text").code(), libc::EIO);
}

#[test]
fn error_without_message_prints_errno_text() {
    let text = Error::new(libc::ENOENT, "").to_string();
    assert_eq!(
        text,
        std::io::Error::from_raw_os_error(libc::ENOENT).to_string()
    );
}

#[test]
fn io_error_keeps_os_code() {
    let error = Error::from(std::io::Error::from_raw_os_error(libc::ENOENT));
    assert_eq!(error.code(), libc::ENOENT);
    assert_eq!(error.source().unwrap().to_string(), error.message());
}

#[test]
fn io_error_without_os_code_maps_kind() {
    use std::io::ErrorKind;
    let kinds = [
        (ErrorKind::Unsupported, libc::ENOSYS),
        (ErrorKind::OutOfMemory, libc::ENOMEM),
        (ErrorKind::InvalidInput, libc::EINVAL),
        (ErrorKind::Other, libc::EIO),
        (ErrorKind::UnexpectedEof, libc::EIO),
    ];
    for (kind, code) in kinds {
        assert_eq!(Error::from(std::io::Error::new(kind, "odd")).code(), code);
    }
}

/// As a C consumer receives it.
#[test]
fn unsupported_iterator_operation_returns_enosys() {
    let schema = SchemaBuilder::new("i").build().unwrap();
    let items = [Err(
        std::io::Error::from(std::io::ErrorKind::Unsupported).into()
    )];
    let stream = ArrayStream::from_batches(schema, items).unwrap();
    let error = stream.into_iter().next().unwrap().unwrap_err();
    assert_eq!(error.code(), libc::ENOSYS);
}

#[test]
fn debug_output_shows_values() {
    let strict = format!("{:?} {:?}", Options::strict(), Options::default());
    assert_eq!(
        strict,
        "Options { strict: true, .. } Options { strict: false, .. }"
    );
    let schema = SchemaBuilder::new("i").metadata("k", "v").build().unwrap();
    assert_eq!(format!("{:?}", schema.metadata().unwrap()), r#"{"k": "v"}"#);
    let text = format!("{schema:?}");
    assert!(text.starts_with("Owner(ArrowSchema { format: 0x"), "{text}");
}
