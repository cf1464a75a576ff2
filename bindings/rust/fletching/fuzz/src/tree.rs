// SPDX-License-Identifier: Apache-2.0

//! Valid and malformed trees of `ArrowSchema` and `ArrowArray`, as a foreign producer may fill
//! them.

use std::cell::Cell;
use std::ffi::{c_char, c_void, CString};
use std::ptr;

use fletching::abi::{ArrowArray, ArrowSchema};
use fletching::{encode_metadata, Array, Metadata, Schema};

use crate::{nowhere, Input};

/// More levels than a tree may have.
pub const MOST_LEVELS: usize = 300;
const MOST_NODES: usize = 400;
const COUNTS: [i64; 4] = [-1, i64::MIN, i64::MAX, (1 << 22) + 1];

/// A struct of both trees, and the memory that it points to. The lists have one entry more than the
/// counts say, so that an empty list has an address.
struct Node {
    schema: ArrowSchema,
    array: ArrowArray,
    format: CString,
    name: CString,
    metadata: Vec<u8>,
    schemas: Vec<*mut ArrowSchema>,
    arrays: Vec<*mut ArrowArray>,
    buffers: Vec<*const c_void>,
}

/// Two trees that the input describes node by node: the corruptions, the number of children, a
/// format and a name that end with NUL, metadata, numbers; then the children.
pub struct Trees {
    // Boxed, because structs point to each other.
    #[allow(clippy::vec_box)]
    nodes: Vec<Box<Node>>,
}

thread_local! {
    static SCHEMAS: Cell<usize> = const { Cell::new(0) };
    static ARRAYS: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    SCHEMAS.set(SCHEMAS.get() + 1);
    // SAFETY: the consumer passes the struct.
    unsafe { (*schema).release = None }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    ARRAYS.set(ARRAYS.get() + 1);
    // SAFETY: the consumer passes the struct.
    unsafe { (*array).release = None }
}

impl Trees {
    #[must_use]
    pub fn new(mut input: Input<'_>) -> Self {
        let mut trees = Self { nodes: Vec::new() };
        trees.grow(&mut input, 1);
        trees
    }

    /// Returns owners of the roots. The trees must outlive them, and everything made from them.
    #[must_use]
    pub fn owners(&mut self) -> (Schema, Array) {
        let root: *mut Node = &mut *self.nodes[0];
        // SAFETY: the structs match the input: callbacks, strings and lists are valid, and the
        // metadata was checked.
        unsafe {
            (
                Schema::move_from(&raw mut (*root).schema),
                Array::move_from(&raw mut (*root).array),
            )
        }
    }

    /// Returns the numbers of schemas and arrays released since the last call.
    #[must_use]
    pub fn releases() -> (usize, usize) {
        (SCHEMAS.take(), ARRAYS.take())
    }

    fn grow(&mut self, input: &mut Input<'_>, level: usize) -> *mut Node {
        let (spoiled, children) = (input.two(), input.byte() % 4);
        let is = |bit: u16| spoiled >> bit & 1 == 1;
        let node = Box::new(Node {
            schema: ArrowSchema::zeroed(),
            array: ArrowArray::zeroed(),
            format: CString::new(input.text()).unwrap(),
            name: CString::new(input.text()).unwrap(),
            metadata: metadata(input, is(14)),
            schemas: Vec::new(),
            arrays: Vec::new(),
            buffers: vec![nowhere(); usize::from(input.byte() % 4)],
        });
        let index = self.nodes.len();
        self.nodes.push(node);
        let has_room = |trees: &Self| level < MOST_LEVELS && trees.nodes.len() < MOST_NODES;
        let node: *mut Node = &mut *self.nodes[index];
        // SAFETY: the node is boxed, and only this function uses it.
        let node_ref = unsafe { &mut *node };
        for child in 0..children {
            if !has_room(self) {
                break;
            }
            let below = self.grow(input, level + 1);
            // SAFETY: as above.
            let (schema, array) = unsafe { (&raw mut (*below).schema, &raw mut (*below).array) };
            let unless = |null: bool| !(null && child == 1);
            node_ref.schemas.push(if unless(is(0)) {
                schema
            } else {
                ptr::null_mut()
            });
            node_ref.arrays.push(if unless(is(1)) {
                array
            } else {
                ptr::null_mut()
            });
        }
        let mut dictionary = None;
        if is(2) && has_room(self) {
            dictionary = Some(self.grow(input, level + 1));
        }
        node_ref.fill_schema(spoiled, dictionary);
        node_ref.fill_array(input, spoiled, dictionary);
        node
    }
}

/// Returns no metadata, a block from the input, or a malformed block that a reader must reject.
fn metadata(input: &mut Input<'_>, has_any: bool) -> Vec<u8> {
    if !has_any {
        return Vec::new();
    }
    let (key, value) = (input.text(), input.text());
    let mut block = encode_metadata([(key, value)]).unwrap();
    let at = usize::from(input.byte());
    if at < block.len() {
        block[at] = input.byte();
    }
    match Metadata::from_bytes(&block) {
        Ok(_) => block,
        Err(error) if error.message().contains("negative") => block,
        Err(_) => Vec::new(), // its end cannot be detected
    }
}

impl Node {
    fn fill_schema(&mut self, spoiled: u16, dictionary: Option<*mut Node>) {
        let is = |bit: u16| spoiled >> bit & 1 == 1;
        let lowest = |text: &CString| text.as_ptr();
        self.schema = ArrowSchema {
            format: if is(5) {
                ptr::null()
            } else {
                lowest(&self.format)
            },
            name: if is(15) {
                ptr::null()
            } else {
                lowest(&self.name)
            },
            metadata: match self.metadata.is_empty() {
                true => ptr::null(),
                false => self.metadata.as_ptr().cast::<c_char>(),
            },
            flags: spoiled.into(),
            n_children: self.schemas.len() as i64,
            children: if is(6) {
                ptr::null_mut()
            } else {
                self.schemas.as_mut_ptr()
            },
            release: (!is(7)).then_some(release_schema as _),
            private_data: nowhere(),
            ..ArrowSchema::zeroed()
        };
        if let Some(values) = dictionary.filter(|_| !is(3)) {
            // SAFETY: the node is boxed.
            self.schema.dictionary = unsafe { &raw mut (*values).schema };
        }
        if is(12) {
            self.schema.n_children = COUNTS[self.format.as_bytes().len() % 4];
        }
        if is(7) {
            // A released struct is not read.
            self.schema.format = nowhere().cast();
            self.schema.name = nowhere().cast();
            self.schema.children = nowhere().cast();
            self.schema.dictionary = nowhere().cast();
        }
    }

    fn fill_array(&mut self, input: &mut Input<'_>, spoiled: u16, dictionary: Option<*mut Node>) {
        let is = |bit: u16| spoiled >> bit & 1 == 1;
        self.array = ArrowArray {
            length: input.number(),
            null_count: if is(8) { input.number() } else { 0 },
            offset: if is(9) { input.number() } else { 0 },
            n_buffers: self.buffers.len() as i64,
            n_children: self.arrays.len() as i64,
            buffers: if is(10) {
                ptr::null_mut()
            } else {
                self.buffers.as_mut_ptr()
            },
            children: self.arrays.as_mut_ptr(),
            release: (!is(11)).then_some(release_array as _),
            private_data: nowhere(),
            ..ArrowArray::zeroed()
        };
        if let Some(values) = dictionary.filter(|_| !is(4)) {
            // SAFETY: the node is boxed.
            self.array.dictionary = unsafe { &raw mut (*values).array };
        }
        if is(13) {
            self.array.n_children = COUNTS[self.format.as_bytes().len() % 4];
        }
        if is(11) {
            self.array.buffers = nowhere().cast();
            self.array.children = nowhere().cast();
            self.array.dictionary = nowhere().cast();
        }
    }
}
