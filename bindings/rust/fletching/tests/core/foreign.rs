// SPDX-License-Identifier: Apache-2.0

//! A producer that knows nothing of the crate: structs with callbacks that write down what is
//! released, in which order.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex};

use fletching::abi::{ArrowArray, ArrowDeviceArray, ArrowDeviceType, ArrowSchema};
use fletching::{Array, DeviceArray, Error, Schema};

/// What happened, in order.
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

/// Is written down when it is dropped.
pub struct Note(pub Log, pub &'static str);

impl Drop for Note {
    fn drop(&mut self) {
        self.0.push(self.1);
    }
}

/// The private data of one foreign array: `name` is written down when it is released, and then the
/// event, if it has one.
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
    // SAFETY: `array` made the struct. What is below it is not in use elsewhere.
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

/// A foreign array of one value, with so many children. They are called "a", "a0", "a1", "ad".
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

/// The same on device 3 of CUDA's, with an event that the release of the array destroys.
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
    // SAFETY: as the texts ask.
    unsafe { Array::from_raw(raw_array(log, name, children, false)) }
}

pub fn device_array(log: &Log, name: &str, children: usize, with_dictionary: bool) -> DeviceArray {
    // SAFETY: as the texts ask.
    unsafe { DeviceArray::from_raw(raw_device_array(log, name, children, with_dictionary)) }
}

/// Replaces what is behind `place`, which is released.
pub fn replace(place: *mut ArrowArray, array: ArrowArray) {
    // SAFETY: a child of a foreign array, which is not in use elsewhere.
    unsafe {
        ArrowArray::release_once(place);
        *place = array;
    }
}

/// The child of an array that is owned, for a test to break.
pub fn child_of(array: &DeviceArray, index: usize) -> *mut ArrowArray {
    // SAFETY: the list of a foreign array.
    unsafe { *array.as_raw().array.children.add(index) }
}

pub unsafe extern "C" fn mark_schema(this: *mut ArrowSchema) {
    // SAFETY: called with a schema.
    unsafe { (*this).release = None };
}

/// A schema that owns nothing, after `change`.
pub fn bare_schema(change: impl FnOnce(&mut ArrowSchema)) -> Schema {
    let mut raw = ArrowSchema::zeroed();
    raw.format = c"i".as_ptr();
    raw.release = Some(mark_schema);
    change(&mut raw);
    // SAFETY: it points to nothing but what `change` has set.
    unsafe { Schema::from_raw(raw) }
}

#[track_caller]
pub fn refused<T>(result: Result<T, Error>, message: &str) {
    let Err(error) = result else {
        panic!("expected an error: {message}");
    };
    assert_eq!((error.code(), error.message()), (libc::EINVAL, message));
}
