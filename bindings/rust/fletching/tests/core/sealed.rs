// SPDX-License-Identifier: Apache-2.0

//! Calls every safe method that a bound on a sealed trait makes callable, on structs that safe code
//! has filled. No method reads through a pointer. The methods of `sealed::Base` are not callable,
//! because no public trait has it as a supertrait.

#![forbid(unsafe_code)]

use std::ptr;

use fletching::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};
use fletching::{Nested, Options, Raw, RawStream};

/// A non-NULL pointer that must not be read.
fn nowhere<T>() -> *mut T {
    ptr::without_provenance_mut(0x1_0000)
}

extern "C" fn never<T>(_: *mut T) {
    unreachable!("only unsafe code calls a callback");
}

fn array() -> ArrowArray {
    ArrowArray {
        n_buffers: 2,
        buffers: nowhere(),
        n_children: 1,
        children: nowhere(),
        dictionary: nowhere(),
        release: Some(never),
        private_data: nowhere(),
        ..ArrowArray::zeroed()
    }
}

fn schema() -> ArrowSchema {
    ArrowSchema {
        format: nowhere(),
        n_children: 1,
        children: nowhere(),
        release: Some(never),
        ..ArrowSchema::zeroed()
    }
}

fn device_array() -> ArrowDeviceArray {
    ArrowDeviceArray {
        array: array(),
        sync_event: nowhere(),
        ..ArrowDeviceArray::zeroed()
    }
}

fn any<R: Raw>(mut raw: R) {
    assert!(R::zeroed().is_released());
    let moved = raw.move_out();
    assert!(raw.is_released() && !moved.is_released());
}

fn nested<R: Nested>(mut raw: R, base: R::Base) {
    let around = raw.around(base);
    assert!(!around.is_released());
    let _: (&R::Base, &R::Base) = (raw.base(), around.base());
    let _: &mut R::Base = raw.base_mut();
    any(raw);
}

#[test]
fn sealed_methods_do_not_follow_pointers() {
    nested(schema(), schema());
    nested(array(), array());
    nested(device_array(), array());
}

fn stream<S: RawStream>(stream: S, batch: S::Batch) {
    let callbacks = stream.callbacks();
    assert_eq!(callbacks.private_data, nowhere());
    let again = S::new(stream.device_type(), callbacks, None);
    assert!(again.is_released());
    let checked = stream.check_batch(&batch, &mut Options::default());
    checked.unwrap();
    any(stream);
}

#[test]
fn sealed_stream_methods_call_no_callback() {
    let made = ArrowArrayStream {
        release: Some(never),
        private_data: nowhere(),
        ..ArrowArrayStream::zeroed()
    };
    stream(made, array());
    let made = ArrowDeviceArrayStream {
        release: Some(never),
        private_data: nowhere(),
        ..ArrowDeviceArrayStream::zeroed()
    };
    stream(made, device_array());
}
