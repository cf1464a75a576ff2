// SPDX-License-Identifier: Apache-2.0

//! Metadata blocks: reads stay inside the block, and the result encodes to the same bytes.

#![no_main]

use fletching::{encode_metadata, Metadata};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let block = bytes.to_vec(); // exact size, so that the sanitizer guards its end
    let metadata = match Metadata::from_bytes(&block) {
        Ok(metadata) => metadata,
        Err(error) => return assert!(error.message().starts_with("metadata: "), "{error}"),
    };
    let pairs: Vec<_> = metadata.iter().collect();
    let range = block.as_ptr_range();
    for text in pairs.iter().flat_map(|(key, value)| [*key, *value]) {
        let text = text.as_ptr_range();
        assert!(range.start <= text.start && text.end <= range.end);
    }
    assert_eq!(pairs.len(), metadata.len());
    assert_eq!(metadata.is_empty(), pairs.is_empty());
    for (key, _) in &pairs {
        let first = pairs.iter().find(|pair| pair.0 == *key).unwrap();
        assert_eq!(metadata.get(key), Some(first.1));
    }
    assert!(block.starts_with(metadata.block()));
    assert_eq!(encode_metadata(pairs).unwrap(), metadata.block());
    // SAFETY: the block was checked, so it ends where its lengths say.
    let unbounded = unsafe { Metadata::read(block.as_ptr().cast()) }.unwrap();
    assert_eq!(unbounded.block(), metadata.block());
});
