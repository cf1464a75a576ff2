// SPDX-License-Identifier: Apache-2.0

//! Arrays and tensors for the DLPack tests, with release counts.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use fletching::abi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned,
    DLPackVersion, DLTensor,
};
use fletching::dlpack::{
    to_dlpack, DlpackTensor, EventHandled, Exclusive, ExportOptions, HostReadable,
    LegacyDlpackTensor, Nulls,
};
use fletching::{
    ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Error, Node, Schema,
    SchemaBuilder,
};

pub static VALUES: Aligned = Aligned([
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
]);

#[repr(align(8))]
pub struct Aligned(pub [i32; 24]);

pub fn values() -> *const c_void {
    VALUES.0.as_ptr().cast()
}

pub fn readable() -> HostReadable {
    // SAFETY: the memory of the tests can be read.
    unsafe { HostReadable::new() }
}

pub const INT8: DLDataType = data_type(DLDataTypeCode::INT, 8);
pub const INT32: DLDataType = data_type(DLDataTypeCode::INT, 32);

pub const fn data_type(code: DLDataTypeCode, bits: u8) -> DLDataType {
    DLDataType {
        code,
        bits,
        lanes: 1,
    }
}

/// An array of a primitive type or of lists. Counts its releases.
#[derive(Clone)]
pub struct Data {
    format: String,
    array: ArrayValues,
    buffers: Vec<*const c_void>,
    device: (ArrowDeviceType, i64),
    event: *mut c_void,
    metadata: Vec<(String, String)>,
    child: Option<Box<Data>>,
    is_dictionary: bool,
    drops: Arc<AtomicUsize>,
}

struct DropCounter(Arc<AtomicUsize>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Data {
    pub fn new(format: &str, length: i64) -> Self {
        Self {
            format: format.into(),
            array: ArrayValues::of(length),
            buffers: vec![ptr::null(), values()],
            device: (ArrowDeviceType::CPU, -1),
            event: ptr::null_mut(),
            metadata: Vec::new(),
            child: None,
            is_dictionary: false,
            drops: Arc::default(),
        }
    }
    pub fn list(size: i64, length: i64, child: Self) -> Self {
        Self {
            buffers: vec![ptr::null()],
            child: Some(Box::new(child)),
            ..Self::new(&format!("+w:{size}"), length)
        }
    }
    pub fn offset(mut self, offset: i64) -> Self {
        self.array.offset = offset;
        self
    }
    pub fn nulls(mut self, count: i64, bitmap: *const u8) -> Self {
        self.array.null_count = count;
        self.buffers[0] = bitmap.cast();
        self
    }
    pub fn on(mut self, device_type: ArrowDeviceType, id: i64) -> Self {
        self.device = (device_type, id);
        self
    }
    pub fn event(mut self) -> Self {
        self.event = ptr::dangling_mut::<u64>().cast();
        self
    }
    pub fn extension(mut self, name: &str, parameters: &str) -> Self {
        let pair = |key: &str, value: &str| (format!("ARROW:extension:{key}"), value.into());
        self.metadata = vec![pair("name", name), pair("metadata", parameters)];
        self
    }
    pub fn dictionary(mut self) -> Self {
        self.is_dictionary = true;
        self
    }

    pub fn schema(&self) -> Schema {
        self.schema_builder().build().unwrap()
    }

    fn schema_builder(&self) -> SchemaBuilder {
        let mut schema = SchemaBuilder::new(&self.format);
        for (key, value) in &self.metadata {
            schema = schema.metadata(key.as_str(), value.as_str());
        }
        if let Some(child) = &self.child {
            schema = schema.child(child.schema_builder());
        }
        if self.is_dictionary {
            schema = schema.dictionary(SchemaBuilder::new("u"));
        }
        schema
    }

    pub fn array(&self) -> DeviceArray {
        let capacity = ArrayCapacity {
            arrays: 100,
            buffers: 200,
        };
        let mut builder =
            ArrayBuilder::new(capacity, DropCounter(Arc::clone(&self.drops))).unwrap();
        let (mut data, mut node) = (self, Node::ROOT);
        loop {
            builder.set(node, data.array, &data.buffers);
            if data.is_dictionary {
                let dictionary = builder.add_dictionary(node);
                builder.set(dictionary, ArrayValues::default(), &[]);
            }
            let Some(child) = &data.child else { break };
            node = builder.add_children(node, 1);
            data = child;
        }
        // SAFETY: the tests do not wait for the event.
        unsafe { builder.finish_with_event(self.device.0, self.device.1, self.event) }.unwrap()
    }

    pub fn releases(&self) -> usize {
        self.drops.load(Ordering::SeqCst)
    }

    pub fn exported(&self, options: ExportOptions) -> DlpackTensor {
        let mut array = self.array();
        let tensor = to_dlpack(&self.schema(), &mut array, &options);
        assert!(tensor.is_err() || array.is_released());
        tensor.unwrap()
    }

    /// Returns the error, and checks that the caller still owns the array.
    pub fn refused(&self, options: ExportOptions) -> Error {
        let mut array = self.array();
        let before = self.releases();
        let error = to_dlpack(&self.schema(), &mut array, &options).unwrap_err();
        assert!(!array.is_released());
        assert_eq!(self.releases(), before);
        error
    }
}

pub fn options() -> ExportOptions {
    ExportOptions::default()
}

pub fn as_storage() -> ExportOptions {
    options().as_storage(true)
}

pub fn exclusive() -> Exclusive {
    // SAFETY: the tests neither read nor write the memory of these tensors.
    unsafe { Exclusive::new() }
}

/// Options with the guarantee that the consumer waits: the tests do not read the memory of these
/// tensors.
pub fn event_handled() -> ExportOptions {
    // SAFETY: as above.
    options().event_handled(unsafe { EventHandled::new() })
}

pub fn counting() -> ExportOptions {
    options().nulls(Nulls::Count(readable()))
}

pub fn shape(tensor: &DLTensor) -> Vec<i64> {
    // SAFETY: the tensors of the tests have this many sizes.
    unsafe { tensor.shape_slice() }.to_vec()
}

pub fn strides(tensor: &DLTensor) -> Vec<i64> {
    // SAFETY: as above.
    unsafe { tensor.strides_slice() }.to_vec()
}

#[track_caller]
pub fn mentions(error: &Error, text: &str) {
    assert!(error.message().contains(text), "{error}");
}

// --- Foreign tensors ----------------------------------------------------------------------------

/// A foreign tensor that counts its deleter calls. It is readable as version 1.3.
pub struct ForeignTensor {
    pub tensor: DLTensor,
    pub version: DLPackVersion,
    pub flags: u64,
    shape: Vec<i64>,
    strides: Vec<i64>,
    deleted: Arc<AtomicUsize>,
}

/// The data that a delivered tensor keeps.
struct Context {
    _lists: (Vec<i64>, Vec<i64>),
    deleted: Arc<AtomicUsize>,
}

unsafe extern "C" fn delete_versioned(this: *mut DLManagedTensorVersioned) {
    // SAFETY: made by `versioned` and deleted once.
    let raw = unsafe { Box::from_raw(this) };
    delete(raw.manager_ctx);
}

unsafe extern "C" fn delete_legacy(this: *mut DLManagedTensor) {
    // SAFETY: made by `legacy` and deleted once.
    let raw = unsafe { Box::from_raw(this) };
    delete(raw.manager_ctx);
}

fn delete(context: *mut c_void) {
    // SAFETY: made by `lists`.
    let context = unsafe { Box::from_raw(context.cast::<Context>()) };
    context.deleted.fetch_add(1, Ordering::SeqCst);
}

impl ForeignTensor {
    pub fn new(dtype: DLDataType, data: *const c_void, shape: &[i64], strides: &[i64]) -> Self {
        Self {
            tensor: DLTensor {
                data: data.cast_mut(),
                device: DLDevice {
                    device_type: DLDeviceType(1),
                    device_id: 0,
                },
                ndim: shape.len() as i32,
                dtype,
                ..DLTensor::zeroed()
            },
            version: DLPackVersion { major: 1, minor: 3 },
            flags: 0,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            deleted: Arc::default(),
        }
    }

    pub fn int32(shape: &[i64], strides: &[i64]) -> Self {
        Self::new(INT32, values(), shape, strides)
    }

    pub fn on(mut self, device_type: i32, device_id: i32) -> Self {
        self.tensor.device = DLDevice {
            device_type: DLDeviceType(device_type),
            device_id,
        };
        self
    }

    pub fn deleted(&self) -> usize {
        self.deleted.load(Ordering::SeqCst)
    }

    fn lists(&self) -> (DLTensor, *mut c_void) {
        let (mut shape, mut strides) = (self.shape.clone(), self.strides.clone());
        let address = |list: &mut Vec<i64>| match list.is_empty() {
            true => ptr::null_mut(),
            false => list.as_mut_ptr(),
        };
        let tensor = DLTensor {
            shape: address(&mut shape),
            strides: address(&mut strides),
            ..self.tensor
        };
        let context = Context {
            _lists: (shape, strides),
            deleted: Arc::clone(&self.deleted),
        };
        (tensor, Box::into_raw(Box::new(context)).cast())
    }

    pub fn versioned(&self) -> DlpackTensor {
        let (dl_tensor, manager_ctx) = self.lists();
        let raw = Box::new(DLManagedTensorVersioned {
            version: self.version,
            manager_ctx,
            deleter: Some(delete_versioned),
            flags: self.flags,
            dl_tensor,
        });
        // SAFETY: the lists live until the deleter is called.
        unsafe { DlpackTensor::from_raw(Box::into_raw(raw)) }.unwrap()
    }

    pub fn legacy(&self) -> LegacyDlpackTensor {
        let (dl_tensor, manager_ctx) = self.lists();
        let raw = Box::new(DLManagedTensor {
            dl_tensor,
            manager_ctx,
            deleter: Some(delete_legacy),
        });
        // SAFETY: as above.
        unsafe { LegacyDlpackTensor::from_raw(Box::into_raw(raw)) }.unwrap()
    }
}
