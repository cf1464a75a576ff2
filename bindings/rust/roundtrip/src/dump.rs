// SPDX-License-Identifier: Apache-2.0

//! The structs as text, one line for every field: `tests/roundtrip/README.md`, "The dump".

use std::fmt::{Display, LowerHex, Write};

use fletching::{Array, DeviceArray, Error, Schema};

/// The dump of a schema and a device array. Errors: EINVAL for a child that is NULL or released,
/// and for metadata that cannot be read.
pub fn dump(schema: &Schema, array: &DeviceArray) -> Result<String, Error> {
    let mut text = String::new();
    write_schema(&mut text, "schema.", schema)?;
    let raw = array.as_raw();
    write_array(&mut text, "array.", array.as_array())?;
    line(&mut text, "", "device_id", raw.device_id);
    line(&mut text, "", "device_type", raw.device_type.0);
    line(
        &mut text,
        "",
        "sync_event",
        address(raw.sync_event as usize),
    );
    for (index, word) in raw.reserved.iter().enumerate() {
        line(&mut text, "", &format!("reserved[{index}]"), word);
    }
    Ok(text)
}

fn line(text: &mut String, path: &str, field: &str, value: impl Display) {
    writeln!(text, "{path}{field}={value}").expect("a String has room");
}

fn address(value: impl LowerHex) -> String {
    format!("{value:#x}")
}

fn bytes(bytes: &[u8]) -> String {
    let mut text = String::from('"');
    for &byte in bytes {
        match byte {
            b'"' | b'%' => write!(text, "%{byte:02x}").expect("a String has room"),
            0x20..=0x7e => text.push(byte.into()),
            _ => write!(text, "%{byte:02x}").expect("a String has room"),
        }
    }
    text + "\""
}

/// `NULL`, or the bytes.
fn optional<T>(pointer: *const T, content: &[u8]) -> String {
    if pointer.is_null() {
        return "NULL".into();
    }
    bytes(content)
}

fn live<'a, T>(path: &str, index: usize, child: Option<&'a T>) -> Result<&'a T, Error> {
    let what = || format!("{path}children[{index}]: NULL: expected a struct");
    child.ok_or_else(|| Error::new(libc::EINVAL, what()))
}

fn write_schema(text: &mut String, path: &str, schema: &Schema) -> Result<(), Error> {
    let raw = schema.as_raw();
    line(
        text,
        path,
        "format",
        optional(raw.format, schema.format().to_bytes()),
    );
    line(
        text,
        path,
        "name",
        optional(raw.name, schema.name().to_bytes()),
    );
    line(
        text,
        path,
        "metadata",
        optional(raw.metadata, schema.metadata()?.block()),
    );
    line(text, path, "flags", raw.flags);
    line(text, path, "n_children", raw.n_children);
    for (index, child) in schema.children().iter().enumerate() {
        let child = live(path, index, *child)?;
        write_schema(text, &format!("{path}children[{index}]."), child)?;
    }
    if let Some(dictionary) = schema.dictionary() {
        write_schema(text, &format!("{path}dictionary."), dictionary)?;
    }
    line(
        text,
        path,
        "private_data",
        address(raw.private_data as usize),
    );
    Ok(())
}

fn write_array(text: &mut String, path: &str, array: &Array) -> Result<(), Error> {
    let raw = array.as_raw();
    line(text, path, "length", raw.length);
    line(text, path, "null_count", raw.null_count);
    line(text, path, "offset", raw.offset);
    line(text, path, "n_buffers", raw.n_buffers);
    line(text, path, "n_children", raw.n_children);
    for (index, buffer) in array.buffers().iter().enumerate() {
        line(
            text,
            path,
            &format!("buffers[{index}]"),
            address(*buffer as usize),
        );
    }
    for (index, child) in array.children().iter().enumerate() {
        let child = live(path, index, *child)?;
        write_array(text, &format!("{path}children[{index}]."), child)?;
    }
    if let Some(dictionary) = array.dictionary() {
        write_array(text, &format!("{path}dictionary."), dictionary)?;
    }
    line(
        text,
        path,
        "private_data",
        address(raw.private_data as usize),
    );
    Ok(())
}
