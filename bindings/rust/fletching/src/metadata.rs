// SPDX-License-Identifier: Apache-2.0

//! The key-value metadata of `ArrowSchema.metadata` and of the async interface.

use std::ffi::c_char;
use std::fmt;

use crate::error::Error;

/// A validated metadata block: pairs of byte strings, in order. Keys may repeat.
///
/// See "ArrowSchema.metadata" in the Arrow C data interface.
#[derive(Clone, Copy, Default)]
pub struct Metadata<'a>(&'a [u8]);

const SIZE: usize = size_of::<i32>();

impl<'a> Metadata<'a> {
    /// Validates the block at `block`. NULL means no pairs.
    ///
    /// Errors: EINVAL for a negative count or length.
    ///
    /// # Safety
    ///
    /// `block` is NULL or points to an encoded block that is neither changed nor freed during `'a`.
    /// A block with wrong lengths is read beyond its end, which cannot be detected.
    pub unsafe fn read(block: *const c_char) -> Result<Self, Error> {
        if block.is_null() {
            return Ok(Self(&[]));
        }
        // SAFETY: the caller guarantees that the block has the lengths it states.
        let bytes = |from: usize, count: usize| unsafe {
            std::slice::from_raw_parts(block.cast::<u8>().add(from), count)
        };
        let size = measure(|from, count| Some(bytes(from, count)))?;
        Ok(Self(bytes(0, size)))
    }

    /// Validates the block at the start of `bytes`.
    ///
    /// Errors: EINVAL for a negative count or length, and for a block that extends beyond `bytes`.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        let size = measure(|from, count| bytes.get(from..from.checked_add(count)?))?;
        Ok(Self(&bytes[..size]))
    }

    /// The encoded block; empty if it was NULL.
    #[must_use]
    pub fn block(&self) -> &'a [u8] {
        self.0
    }

    /// The number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0
            .first_chunk()
            .map_or(0, |count| i32::from_ne_bytes(*count) as usize)
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the keys and values.
    #[must_use]
    pub fn iter(&self) -> MetadataIter<'a> {
        MetadataIter {
            rest: self.0.get(SIZE..).unwrap_or_default(),
            left: self.len(),
        }
    }

    /// Returns the value of the first pair with this key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.iter().find(|pair| pair.0 == key).map(|pair| pair.1)
    }
}

/// The keys and values of a [`Metadata`], in order.
#[derive(Clone, Debug)]
pub struct MetadataIter<'a> {
    /// The rest of a validated block.
    rest: &'a [u8],
    left: usize,
}

impl<'a> MetadataIter<'a> {
    fn text(&mut self) -> &'a [u8] {
        let (length, rest) = self
            .rest
            .split_first_chunk()
            .expect("the block was checked");
        let (text, rest) = rest.split_at(i32::from_ne_bytes(*length) as usize);
        self.rest = rest;
        text
    }
}

impl<'a> Iterator for MetadataIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some((self.text(), self.text()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for MetadataIter<'_> {}
impl std::iter::FusedIterator for MetadataIter<'_> {}

impl<'a> IntoIterator for Metadata<'a> {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = MetadataIter<'a>;

    fn into_iter(self) -> MetadataIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Metadata<'a> {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = MetadataIter<'a>;

    fn into_iter(self) -> MetadataIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        f.debug_map()
            .entries(self.iter().map(|(key, value)| (text(key), text(value))))
            .finish()
    }
}

/// Returns the size of the block. `bytes(from, count)` returns `count` bytes at `from`, or None
/// beyond the end.
fn measure<'a>(bytes: impl Fn(usize, usize) -> Option<&'a [u8]>) -> Result<usize, Error> {
    let malformed = |what: &dyn Fn() -> String, at: usize, why: String| {
        Error::invalid(format!("metadata: {} at byte {at}: {why}", what()))
    };
    let number = |what: &dyn Fn() -> String, at: usize| {
        let Some(Ok(chunk)) = bytes(at, SIZE).map(<[u8; SIZE]>::try_from) else {
            return Err(malformed(what, at, "truncated: expected 4 bytes".into()));
        };
        let value = i32::from_ne_bytes(chunk);
        usize::try_from(value).map_err(|_| {
            malformed(
                what,
                at,
                format!("negative: expected 0 or more, got {value}"),
            )
        })
    };
    let count = number(&|| "number of pairs".into(), 0)?;
    let mut position = SIZE;
    for text in 0..count as u64 * 2 {
        let what = || {
            format!(
                "length of {} {}",
                ["key", "value"][text as usize % 2],
                text / 2
            )
        };
        let length = number(&what, position)?;
        if bytes(position + SIZE, length).is_none() {
            let why = format!("too large: expected at most the bytes that follow, got {length}");
            return Err(malformed(&what, position, why));
        }
        position += SIZE + length;
    }
    Ok(position)
}

/// Encodes pairs. The encoding of no pairs is a 32-bit 0; a schema without metadata has NULL
/// instead.
///
/// Errors: EINVAL for more than 2^31-1 pairs, and for a key or value of more than 2^31-1 bytes.
pub fn encode_metadata<'a>(
    pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<Vec<u8>, Error> {
    let length = |what: &str, length: usize| {
        i32::try_from(length).map(i32::to_ne_bytes).map_err(|_| {
            Error::invalid(format!(
                "metadata: {what}: expected at most 2147483647, got {length}"
            ))
        })
    };
    let mut block = vec![0; SIZE];
    let mut count = 0;
    for (key, value) in pairs {
        for text in [key, value] {
            block.extend(length("text too long", text.len())?);
            block.extend(text);
        }
        count += 1;
    }
    block[..SIZE].copy_from_slice(&length("too many pairs", count)?);
    Ok(block)
}
