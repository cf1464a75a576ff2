// SPDX-License-Identifier: Apache-2.0

//! Structs as the text that `producer.h` defines.

use std::ffi::{c_char, c_void, CStr};
use std::fmt::Write;

use fletching_abi::{ArrowArray, ArrowDeviceArray, ArrowDeviceType, ArrowSchema};

use crate::check::{below, check_array};
use crate::error::Error;
use crate::layout::buffer_sizes;

/// The text of a schema and an array. They are checked first; the buffers have to be in host memory.
///
/// # Safety
///
/// Pointers that are not NULL lead to what the specification says.
pub unsafe fn describe(schema: &ArrowSchema, array: &ArrowDeviceArray) -> Result<String, Error> {
    // SAFETY: the caller's promise.
    unsafe { check_array(schema, &array.array)? };
    if array.device_type != ArrowDeviceType::CPU {
        let problem = format!(
            "buffers on device {} cannot be read here",
            array.device_type
        );
        return Err(Error::new(libc::ENOTSUP, problem));
    }
    if !array.sync_event.is_null() {
        return Err(Error::invalid(
            "sync_event is not NULL, and host memory has no event",
        ));
    }
    let mut text = String::new();
    // SAFETY: the caller's promise, and the structs were checked.
    unsafe { append(&mut text, "", schema, &array.array)? };
    Ok(text)
}

/// The first line in which two descriptions differ, as an error.
pub fn require_same_text(seen: &str, expected: &str) -> Result<(), Error> {
    let mut expected = expected.split('\n');
    let mut seen = seen.split('\n');
    loop {
        match (seen.next(), expected.next()) {
            (None, None) => return Ok(()),
            (seen, expected) if seen == expected => (),
            (seen, expected) => {
                let [seen, expected] = [seen, expected].map(|line| line.unwrap_or("(the end)"));
                let problem = format!("'{seen}', expected '{expected}'");
                return Err(Error::new(libc::EBADMSG, problem));
            }
        }
    }
}

/// Both have been checked.
unsafe fn append(
    text: &mut String,
    path: &str,
    schema: &ArrowSchema,
    array: &ArrowArray,
) -> Result<(), Error> {
    let begin = if path.is_empty() { "/" } else { path };
    // SAFETY: the caller's promise: strings end, blocks and buffers are as long as they say.
    let (format, name, metadata, buffers) = unsafe {
        let format = foreign_text(schema.format);
        let buffers = buffer_texts(&format, array)?;
        (
            format,
            foreign_text(schema.name),
            metadata_text(schema.metadata)?,
            buffers,
        )
    };
    let ArrowArray {
        length,
        null_count,
        offset,
        ..
    } = array;
    *text += &format!(
        "{begin} format={format} name={name} flags={} metadata={metadata} length={length} \
         null_count={null_count} offset={offset}\n",
        schema.flags
    );
    for (index, buffer) in buffers.iter().enumerate() {
        *text += &format!("{begin} buffer {index} {buffer}\n");
    }
    // SAFETY: both were checked.
    unsafe {
        for index in 0..schema.n_children as usize {
            let (schema, array) = (*schema.children.add(index), *array.children.add(index));
            append(text, &below(path, index), &*schema, &*array)?;
        }
        match (schema.dictionary.as_ref(), array.dictionary.as_ref()) {
            (Some(schema), Some(array)) => append(text, &below(path, 'd'), schema, array),
            _ => Ok(()),
        }
    }
}

/// NULL is the empty text; what is not UTF-8 is replaced, and so differs from any expected text.
unsafe fn foreign_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not NULL, and the specification has it end with NUL.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

unsafe fn buffer_texts(format: &str, array: &ArrowArray) -> Result<Vec<String>, Error> {
    // SAFETY: the caller's promise; there are as many buffers as there are sizes.
    unsafe {
        let sizes = buffer_sizes(format, array)?;
        let text = |(index, size)| buffer_text(*array.buffers.add(index), size);
        Ok(sizes.into_iter().enumerate().map(text).collect())
    }
}

unsafe fn buffer_text(buffer: *const c_void, size: i64) -> String {
    if buffer.is_null() {
        return "-".into();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), size as usize) };
    format!("{size}:{}", hex(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The encoded block says its size nowhere: a count, then twice as many texts behind their lengths.
unsafe fn metadata_text(block: *const c_char) -> Result<String, Error> {
    if block.is_null() {
        return Ok("-".into());
    }
    let count_at = |at: usize| {
        // SAFETY: a count stands there, if the ones before it are right.
        let count = unsafe { block.add(at).cast::<i32>().read_unaligned() };
        usize::try_from(count)
            .map_err(|_| Error::invalid(format!("metadata has a count of {count}")))
    };
    let mut size = size_of::<i32>();
    for _ in 0..2 * count_at(0)? {
        size += size_of::<i32>() + count_at(size)?;
    }
    // SAFETY: the block is as long as its counts say.
    Ok(hex(unsafe {
        std::slice::from_raw_parts(block.cast(), size)
    }))
}
