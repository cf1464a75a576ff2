// SPDX-License-Identifier: Apache-2.0

//! Metadata of a schema: encoding, reading in place, and rejection of malformed blocks.

use fletching::{encode_metadata, Metadata};

use crate::foreign::{bare_schema, refused};

fn number(value: i32) -> Vec<u8> {
    value.to_ne_bytes().into()
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [number(bytes.len() as i32), bytes.into()].concat()
}

fn encode(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    encode_metadata(pairs.iter().copied()).unwrap()
}

/// Reads a block without a byte behind it, so that Miri detects reads beyond its end.
pub fn read(block: &[u8]) -> Metadata<'_> {
    // SAFETY: the block is encoded.
    unsafe { Metadata::read(block.as_ptr().cast()) }.unwrap()
}

fn pairs<'a>(metadata: &Metadata<'a>) -> Vec<(&'a [u8], &'a [u8])> {
    metadata.iter().collect()
}

#[test]
fn pairs_are_iterated_by_value_and_by_reference() {
    let block = encode(&[(b"a", b"1"), (b"b", b"")]);
    let metadata = Metadata::from_bytes(&block).unwrap();
    let mut found = Vec::new();
    for (key, value) in &metadata {
        found.push((key, value));
    }
    assert_eq!(found, pairs(&metadata));
    let mut rest = metadata.into_iter();
    assert_eq!((rest.len(), rest.next()), (2, Some((&b"a"[..], &b"1"[..]))));
    assert_eq!(rest.size_hint(), (1, Some(1)));
    assert_eq!(rest.last(), Some((&b"b"[..], &b""[..])));
}

#[test]
fn read_null_returns_no_pairs() {
    // SAFETY: NULL is allowed.
    let metadata = unsafe { Metadata::read(std::ptr::null()) }.unwrap();
    assert!(metadata.is_empty() && metadata.iter().next().is_none());
    assert_eq!(
        (metadata.len(), metadata.block(), metadata.get(b"")),
        (0, &b""[..], None)
    );
}

#[test]
fn encode_without_pairs_returns_four_bytes() {
    assert_eq!(encode(&[]), number(0));
    assert!(read(&number(0)).is_empty());
    assert_eq!(read(&number(0)).block(), number(0));
}

#[test]
fn read_block_encodes_to_same_bytes() {
    let block = encode(&[(b"k", b"v"), (b"", b""), (b"k", b"again")]);
    let metadata = read(&block);
    assert_eq!((metadata.len(), metadata.is_empty()), (3, false));
    assert_eq!(metadata.block(), block);
    assert_eq!(encode(&pairs(&metadata)), block);
    assert_eq!(metadata.get(b"k"), Some(&b"v"[..]));
    assert_eq!(metadata.get(b""), Some(&b""[..]));
    assert_eq!(metadata.get(b"no"), None);
    assert_eq!(
        format!("{metadata:?}"),
        r#"{"k": "v", "": "", "k": "again"}"#
    );
}

#[test]
fn read_accepts_unaligned_block() {
    let block = [&b"x"[..], &encode(&[(b"key", b"value")])].concat();
    assert_eq!(read(&block[1..]).get(b"key"), Some(&b"value"[..]));
}

#[test]
fn from_bytes_ignores_bytes_after_block() {
    let block = encode(&[(b"a", b"1")]);
    let longer = [&block[..], b"and more"].concat();
    assert_eq!(Metadata::from_bytes(&longer).unwrap().block(), block);
}

#[test]
fn schema_metadata_is_checked() {
    let block = [number(1), number(-5)].concat();
    let schema = bare_schema(|raw| raw.metadata = block.as_ptr().cast());
    refused(
        schema.metadata(),
        "metadata: length of key 0 at byte 4: negative: expected 0 or more, got -5",
    );
}

/// Only the length of the text is read, because no object is that long.
#[test]
#[cfg(target_pointer_width = "64")]
#[cfg_attr(miri, ignore = "two gigabytes")]
fn encode_rejects_text_over_int32_max() {
    let huge = vec![0_u8; 1 << 31];
    refused(
        encode_metadata([(&b"k"[..], &huge[..])]),
        "metadata: text too long: expected at most 2147483647, got 2147483648",
    );
}

#[test]
fn rule_metadata_encoding() {
    let cases = [
        (
            number(-1),
            "number of pairs at byte 0: negative: expected 0 or more, got -1",
        ),
        (
            [number(1), number(-5)].concat(),
            "length of key 0 at byte 4: negative: expected 0 or more, got -5",
        ),
        (
            [number(1), text(b"k"), number(i32::MIN)].concat(),
            "length of value 0 at byte 9: negative: expected 0 or more, got -2147483648",
        ),
        (
            vec![],
            "number of pairs at byte 0: truncated: expected 4 bytes",
        ),
        (
            vec![1, 0, 0],
            "number of pairs at byte 0: truncated: expected 4 bytes",
        ),
        (
            [number(2), text(b"k"), text(b"v")].concat(),
            "length of key 1 at byte 14: truncated: expected 4 bytes",
        ),
        (
            [number(1), number(2), b"k".into()].concat(),
            "length of key 0 at byte 4: too large: expected at most the bytes that follow, got 2",
        ),
        (
            [number(i32::MAX), text(b"")].concat(),
            "length of value 0 at byte 8: truncated: expected 4 bytes",
        ),
        (
            [number(1), number(i32::MAX)].concat(),
            "length of key 0 at byte 4: too large: expected at most the bytes that follow, got \
             2147483647",
        ),
    ];
    for (block, message) in cases {
        refused(
            Metadata::from_bytes(&block),
            &format!("metadata: {message}"),
        );
    }
}

#[test]
fn rule_metadata_native_endian() {
    assert_eq!(encode(&[(b"key", b"")])[4..8], 3_i32.to_ne_bytes());
}

#[test]
fn rule_metadata_not_nul_terminated() {
    let block = encode(&[(b"a\0b", b"v"), (b"k", b"a\0b")]);
    let metadata = read(&block);
    assert_eq!(
        pairs(&metadata),
        [(&b"a\0b"[..], &b"v"[..]), (b"k", b"a\0b")]
    );
    assert_eq!(metadata.get(b"k"), Some(&b"a\0b"[..]));
}
