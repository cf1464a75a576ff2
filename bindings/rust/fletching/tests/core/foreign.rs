// SPDX-License-Identifier: Apache-2.0

//! A foreign producer, independent of the crate: structs with callbacks that record the order of
//! releases.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex};

use fletching::abi::{ArrowArray, ArrowDeviceArray, ArrowDeviceType, ArrowSchema};
use fletching::{Array, DeviceArray, Error, Schema};

/// The events, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
    #[track_caller]
    pub fn expect(&self, lines: &[&str]) {
        assert_eq!(self.lines(), lines);
    }
}

/// Is recorded when it is dropped.
pub struct Note(pub Log, pub &'static str);

impl Drop for Note {
    fn drop(&mut self) {
        self.0.push(self.1);
    }
}

/// The private data of a foreign array. The release records `name`, then the event, if there is
/// one.
struct Node {
    log: Log,
    name: String,
    buffers: [*const c_void; 2],
    children: Vec<ArrowArray>,
    pointers: Vec<*mut ArrowArray>,
    dictionary: ArrowArray,
    event: Option<*mut u64>,
}

unsafe extern "C" fn release(this: *mut ArrowArray) {
    // SAFETY: `array` made the struct, and its descendants are not in use elsewhere.
    unsafe {
        let node = Box::from_raw((*this).private_data.cast::<Node>());
        (*this).release = None;
        for below in node.pointers.iter().copied() {
            if let Some(release) = (*below).release {
                release(below);
            }
        }
        let mut dictionary = ptr::read(&node.dictionary);
        if let Some(release) = dictionary.release {
            release(&mut dictionary);
        }
        node.log.push(node.name.clone());
        if let Some(event) = node.event {
            drop(Box::from_raw(event));
            node.log.push("event");
        }
    }
}

/// Makes a foreign array of one value with this many children. For "a", the children are "a0" and
/// "a1", and the dictionary "ad".
pub fn raw_array(log: &Log, name: &str, children: usize, with_dictionary: bool) -> ArrowArray {
    let below = (0..children)
        .map(|index| raw_array(log, &format!("{name}{index}"), 0, false))
        .collect();
    let dictionary = match with_dictionary {
        true => raw_array(log, &format!("{name}d"), 0, false),
        false => ArrowArray::zeroed(),
    };
    let node = Box::into_raw(Box::new(Node {
        log: log.clone(),
        name: name.into(),
        buffers: [ptr::null(), ptr::dangling::<u64>().cast()],
        children: below,
        pointers: Vec::new(),
        dictionary,
        event: None,
    }));
    let mut array = ArrowArray::zeroed();
    // SAFETY: the node was just made.
    unsafe {
        let first = (*node).children.as_mut_ptr();
        (*node).pointers = (0..children).map(|index| first.add(index)).collect();
        array.length = 1;
        array.n_buffers = 2;
        array.buffers = (&raw mut (*node).buffers).cast();
        array.n_children = children as i64;
        if children > 0 {
            array.children = (*node).pointers.as_mut_ptr();
        }
        if with_dictionary {
            array.dictionary = &raw mut (*node).dictionary;
        }
    }
    array.release = Some(release);
    array.private_data = node.cast();
    array
}

/// Makes a foreign array on CUDA device 3 with an event that the release of the array destroys.
pub fn raw_device_array(
    log: &Log,
    name: &str,
    children: usize,
    with_dictionary: bool,
) -> ArrowDeviceArray {
    let mut raw = ArrowDeviceArray::zeroed();
    raw.array = raw_array(log, name, children, with_dictionary);
    raw.device_type = ArrowDeviceType::CUDA;
    raw.device_id = 3;
    let event = Box::into_raw(Box::new(7_u64));
    // SAFETY: the array was just made.
    unsafe { (*raw.array.private_data.cast::<Node>()).event = Some(event) };
    raw.sync_event = event.cast();
    raw
}

pub fn array(log: &Log, name: &str, children: usize) -> Array {
    // SAFETY: the struct conforms to the specification.
    unsafe { Array::from_raw(raw_array(log, name, children, false)) }
}

pub fn device_array(log: &Log, name: &str, children: usize, with_dictionary: bool) -> DeviceArray {
    // SAFETY: the struct conforms to the specification.
    unsafe { DeviceArray::from_raw(raw_device_array(log, name, children, with_dictionary)) }
}

/// Releases the struct at `place`, and replaces it.
pub fn replace(place: *mut ArrowArray, array: ArrowArray) {
    // SAFETY: `place` is a child of a foreign array that no other code uses.
    unsafe {
        ArrowArray::release_once(place);
        *place = array;
    }
}

/// Returns the child of an owned array, for a test that corrupts it.
pub fn child_of(array: &DeviceArray, index: usize) -> *mut ArrowArray {
    // SAFETY: the array has more than `index` children, and its list of children is valid.
    unsafe { *array.as_raw().array.children.add(index) }
}

pub unsafe extern "C" fn mark_schema(this: *mut ArrowSchema) {
    // SAFETY: called with a schema.
    unsafe { (*this).release = None };
}

/// Makes a schema that owns nothing, and modifies it with `change`.
pub fn bare_schema(change: impl FnOnce(&mut ArrowSchema)) -> Schema {
    let mut raw = ArrowSchema::zeroed();
    raw.format = c"i".as_ptr();
    raw.release = Some(mark_schema);
    change(&mut raw);
    // SAFETY: its pointers are static or set by `change`.
    unsafe { Schema::from_raw(raw) }
}

#[track_caller]
pub fn refused<T>(result: Result<T, Error>, message: &str) {
    let Err(error) = result else {
        panic!("expected an error: {message}");
    };
    assert_eq!((error.code(), error.message()), (libc::EINVAL, message));
}
