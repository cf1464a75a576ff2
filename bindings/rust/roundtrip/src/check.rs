// SPDX-License-Identifier: Apache-2.0

//! Whether foreign structs may be walked at all. Buffers and texts are not read.

use fletching_abi::{ArrowArray, ArrowDeviceArrayStream, ArrowSchema};

use crate::error::Error;
use crate::tree::Tree;

/// Deeper than any type that people use, and not so deep that foreign structs exhaust the stack.
const MAX_DEPTH: usize = 64;

/// The path of a node: "" for the root, "/2/d" for the dictionary of its third child.
pub(crate) fn below(path: &str, child: impl std::fmt::Display) -> String {
    format!("{path}/{child}")
}

fn require(condition: bool, path: &str, problem: impl FnOnce() -> String) -> Result<(), Error> {
    if condition {
        return Ok(());
    }
    let path = if path.is_empty() { "/" } else { path };
    Err(Error::invalid(format!("{path} {}", problem())))
}

/// Refuses a schema that is released, lacks what is mandatory, or is nested too deep.
///
/// # Safety
///
/// Pointers that are not NULL lead to what the specification says.
pub unsafe fn check_schema(schema: &ArrowSchema) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe { schema_node("", schema) }
}

/// Refuses a schema and an array that cannot be walked side by side.
///
/// # Safety
///
/// Pointers that are not NULL lead to what the specification says.
pub unsafe fn check_array(schema: &ArrowSchema, array: &ArrowArray) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe {
        schema_node("", schema)?;
        array_node("", schema, array)
    }
}

/// Refuses a stream that is released or lacks a callback.
pub fn check_stream(stream: &ArrowDeviceArrayStream) -> Result<(), Error> {
    let refuse = |what| Err(Error::invalid(format!("stream {what}")));
    if stream.release.is_none() {
        return refuse("is released");
    }
    if stream.get_schema.is_none() {
        return refuse("has a get_schema of NULL");
    }
    if stream.get_next.is_none() {
        return refuse("has a get_next of NULL");
    }
    if stream.get_last_error.is_none() {
        return refuse("has a get_last_error of NULL");
    }
    Ok(())
}

unsafe fn schema_node(path: &str, schema: &ArrowSchema) -> Result<(), Error> {
    // SAFETY: pointers that are not NULL are good, and `node` looked for NULL.
    unsafe {
        node(path, schema)?;
        require(!schema.format.is_null(), path, || {
            "schema.format is NULL".into()
        })?;
        for index in 0..schema.n_children as usize {
            schema_node(&below(path, index), &**schema.children.add(index))?;
        }
        schema
            .dictionary
            .as_ref()
            .map_or(Ok(()), |values| schema_node(&below(path, 'd'), values))
    }
}

/// `schema` has been checked.
unsafe fn array_node(path: &str, schema: &ArrowSchema, array: &ArrowArray) -> Result<(), Error> {
    // SAFETY: pointers that are not NULL are good, and `node` looked for NULL.
    unsafe { node(path, array)? };
    for (name, value, least) in [
        ("length", array.length, 0),
        ("offset", array.offset, 0),
        ("null_count", array.null_count, -1),
        ("n_buffers", array.n_buffers, 0),
    ] {
        require(value >= least, path, || format!("array.{name} is {value}"))?;
    }
    let has_buffers = array.n_buffers == 0 || !array.buffers.is_null();
    require(has_buffers, path, || "array.buffers is NULL".into())?;
    require(array.n_children == schema.n_children, path, || {
        format!(
            "has {} children, its schema {}",
            array.n_children, schema.n_children
        )
    })?;
    require(
        array.dictionary.is_null() == schema.dictionary.is_null(),
        path,
        || "has a dictionary in only one of schema and array".into(),
    )?;
    // SAFETY: the same, and both have the same shape.
    unsafe {
        for index in 0..array.n_children as usize {
            let (schema, array) = (*schema.children.add(index), *array.children.add(index));
            array_node(&below(path, index), &*schema, &*array)?;
        }
        match (schema.dictionary.as_ref(), array.dictionary.as_ref()) {
            (Some(schema), Some(array)) => array_node(&below(path, 'd'), schema, array),
            _ => Ok(()),
        }
    }
}

/// What holds for schemas and arrays alike; says nothing of the nodes below, but that they are there.
unsafe fn node<T: Tree>(path: &str, node: &T) -> Result<(), Error> {
    let (name, links) = (T::NAME, node.links());
    require(links.release.is_some(), path, || {
        format!("{name} is released")
    })?;
    let depth = path.matches('/').count();
    require(depth <= MAX_DEPTH, path, || {
        format!("{name} is nested deeper than {MAX_DEPTH}")
    })?;
    let count = links.n_children;
    require(count >= 0, path, || format!("{name}.n_children is {count}"))?;
    let has_list = count == 0 || !links.children.is_null();
    require(has_list, path, || format!("{name}.children is NULL"))?;
    for index in 0..count as usize {
        // SAFETY: the list has that many entries.
        let child = unsafe { *links.children.add(index) };
        require(!child.is_null(), path, || {
            format!("{name}.children[{index}] is NULL")
        })?;
    }
    Ok(())
}
