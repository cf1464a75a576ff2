// SPDX-License-Identifier: Apache-2.0

//! A foreign array of two children that counts its releases.

use std::ptr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};

use fletching::abi::{ArrowArray, ArrowDeviceArray};
use fletching::{ArrowDeviceType, DeviceArray};

/// Counts releases, and records the thread of the last one.
#[derive(Default)]
pub struct Releases {
    last: Mutex<(usize, Option<ThreadId>)>,
    changed: Condvar,
}

impl Releases {
    pub fn add(&self) {
        let mut last = self.last.lock().unwrap();
        *last = (last.0 + 1, Some(thread::current().id()));
        self.changed.notify_all();
    }

    pub fn count(&self) -> usize {
        self.last.lock().unwrap().0
    }

    /// Waits for this many releases, and returns the thread of the last one.
    pub fn wait_for(&self, count: usize) -> ThreadId {
        let last = self.last.lock().unwrap();
        let last = self.changed.wait_while(last, |last| last.0 < count);
        last.unwrap().1.unwrap()
    }
}

/// Makes an array without buffers whose release only marks it.
pub fn empty(device_type: ArrowDeviceType) -> ArrowDeviceArray {
    unsafe extern "C" fn release(array: *mut ArrowArray) {
        // SAFETY: the consumer passes the array.
        unsafe { (*array).release = None };
    }
    let mut raw = ArrowDeviceArray::zeroed();
    raw.array.release = Some(release);
    raw.device_type = device_type;
    raw
}

/// Called by an array's release; the `private_data` of the array.
type OnRelease = Box<dyn Fn() + Send + Sync>;

fn with_release(on_release: OnRelease) -> ArrowArray {
    unsafe extern "C" fn release(array: *mut ArrowArray) {
        // SAFETY: `with_release` stored the private data, and the children are boxes.
        unsafe {
            let array = &mut *array;
            let on_release = Box::from_raw(array.private_data.cast::<OnRelease>());
            for child in array.children_slice() {
                ArrowArray::release_once(*child);
                drop(Box::from_raw(*child));
            }
            if !array.children.is_null() {
                drop(Box::from_raw(array.children.cast::<[*mut ArrowArray; 2]>()));
            }
            array.release = None;
            on_release();
        }
    }
    let mut array = ArrowArray::zeroed();
    array.release = Some(release);
    array.private_data = Box::into_raw(Box::new(on_release)).cast();
    array
}

pub fn array(
    device_type: ArrowDeviceType,
    on_release: impl Fn() + Send + Sync + 'static,
) -> DeviceArray {
    let mut raw = empty(device_type);
    raw.array = with_release(Box::new(on_release));
    // SAFETY: the array conforms to the specification.
    unsafe { DeviceArray::from_raw(raw) }
}

/// Makes an array of two children that counts its releases and theirs.
pub fn counted(
    device_type: ArrowDeviceType,
    device_id: i64,
) -> (DeviceArray, Arc<Releases>, Arc<Releases>) {
    let (parents, children) = (Arc::<Releases>::default(), Arc::<Releases>::default());
    let child = || {
        let children = Arc::clone(&children);
        Box::into_raw(Box::new(with_release(Box::new(move || children.add()))))
    };
    let list = Box::into_raw(Box::new([child(), child()]));
    let mut raw = empty(device_type);
    let released = Arc::clone(&parents);
    raw.array = with_release(Box::new(move || released.add()));
    raw.array.n_children = 2;
    raw.array.children = list.cast();
    raw.device_id = device_id;
    raw.sync_event = ptr::null_mut();
    // SAFETY: the array conforms to the specification.
    let array = unsafe { DeviceArray::from_raw(raw) };
    (array, parents, children)
}
