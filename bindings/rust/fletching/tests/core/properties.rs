// SPDX-License-Identifier: Apache-2.0

//! Properties of all metadata and all foreign strings.

use std::cell::RefCell;
use std::ffi::c_char;

use fletching::abi::ArrowArrayStream;
use fletching::{encode_metadata, ArrayStream, Error, Metadata};
use proptest::collection::vec;
use proptest::prelude::{any, Just, ProptestConfig};
use proptest::{prop_assert, prop_assert_eq, proptest};

use crate::foreign::bare_schema;
use crate::metadata::read;

/// The number of cases is PROPTEST_CASES.
fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn encoded_pairs_round_trip(pairs in vec((vec(any::<u8>(), 0..20), vec(any::<u8>(), 0..20)), 0..6)) {
        let block = encode_metadata(pairs.iter().map(|(key, value)| (&key[..], &value[..]))).unwrap();
        for metadata in [read(&block), Metadata::from_bytes(&block).unwrap()] {
            let read: Vec<_> = metadata.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            prop_assert_eq!(&read, &pairs);
            prop_assert_eq!(metadata.block(), &block[..]);
            for (key, _) in &pairs {
                let first = pairs.iter().find(|pair| pair.0 == *key).unwrap();
                prop_assert_eq!(metadata.get(key), Some(&first.1[..]));
            }
        }
        // Every prefix of a block is rejected.
        for end in 0..block.len() {
            prop_assert!(Metadata::from_bytes(&block[..end]).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_rejected(bytes in vec(prop_byte(), 0..40)) {
        if let Ok(metadata) = Metadata::from_bytes(&bytes) {
            let encoded = encode_metadata(metadata.iter()).unwrap();
            prop_assert_eq!(&encoded[..], metadata.block());
            prop_assert!(bytes.starts_with(&encoded));
        }
    }

    #[test]
    fn foreign_text_is_printable(bytes in vec(any::<u8>(), 0..200)) {
        let shown = shown(&bytes);
        let bytes = bytes.split(|byte| *byte == 0).next().unwrap();
        prop_assert!(shown.chars().all(|c| !c.is_ascii_control() || c == '\n' || c == '\t'));
        prop_assert!(shown.len() <= 4 * bytes.len());
        if let Ok(text) = std::str::from_utf8(bytes) {
            if !text.chars().any(|c| c.is_ascii_control()) {
                prop_assert_eq!(&shown, text);
            }
        }
    }
}

/// Bytes, weighted towards the bytes of blocks.
fn prop_byte() -> impl proptest::strategy::Strategy<Value = u8> {
    proptest::prop_oneof![6 => Just(0_u8), 2 => 1_u8..4, 1 => any::<u8>()]
}

thread_local! {
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    TEXT.with_borrow(|text| text.as_ptr().cast())
}

/// The error message for a foreign stream's message.
fn shown(text: &[u8]) -> String {
    TEXT.set([text, &[0]].concat());
    let failing = [Err(Error::new(libc::EIO, ""))];
    let stream = ArrayStream::from_batches(bare_schema(|_| ()), failing).unwrap();
    let mut raw = stream.into_raw();
    raw.get_last_error = Some(get_last_error);
    // SAFETY: the stream belongs to the test.
    let mut stream = unsafe { ArrayStream::from_raw(raw) }.into_iter();
    stream.next().unwrap().unwrap_err().message().into()
}
