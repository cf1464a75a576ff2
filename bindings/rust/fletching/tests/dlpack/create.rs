// SPDX-License-Identifier: Apache-2.0

//! Tensors over the caller's memory, without a schema.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use fletching::abi::{
    DLDevice, DLDeviceType, DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_READ_ONLY,
};
use fletching::dlpack::{from_dlpack, DlpackElement, DlpackTensor, TensorParts};
use fletching::Error;
use libc::EINVAL;

use crate::support::*;

struct Counted([i32; 4], Arc<AtomicUsize>);

impl AsRef<[i32]> for Counted {
    fn as_ref(&self) -> &[i32] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted() -> (Counted, Arc<AtomicUsize>) {
    let drops = Arc::default();
    (Counted([1, 2, 3, 4], Arc::clone(&drops)), drops)
}

/// Returns the values of a tensor in row-major order.
fn read<T: DlpackElement>(tensor: &DlpackTensor) -> Vec<T> {
    let count: i64 = tensor.shape().unwrap().iter().product();
    // SAFETY: the tensors of these tests have this many values.
    unsafe { std::slice::from_raw_parts(tensor.data().unwrap().cast(), count as usize) }.to_vec()
}

#[test]
fn from_vec_exposes_values() {
    let values = vec![1.5f64, 2.5, 3.5, 4.5, 5.5, 6.5];
    let address = values.as_ptr();
    let tensor = DlpackTensor::from_vec(values, &[2, 3]).unwrap();
    assert_eq!(tensor.shape().unwrap(), [2, 3]);
    assert_eq!(tensor.strides().unwrap(), Some(&[3, 1][..]));
    assert_eq!(tensor.dtype().unwrap(), f64::DTYPE);
    assert_eq!(tensor.flags().unwrap(), 0);
    assert_eq!(tensor.data().unwrap().cast_const(), address.cast());
    assert_eq!(read::<f64>(&tensor), [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]);
    let imported = from_dlpack(tensor, &Default::default()).unwrap();
    assert_eq!((imported.array.length(), imported.read_only), (2, false));
}

#[test]
fn element_types_match_dlpack() {
    use fletching::abi::DLDataTypeCode as Code;
    for (dtype, expected) in [
        (i8::DTYPE, data_type(Code::INT, 8)),
        (i64::DTYPE, data_type(Code::INT, 64)),
        (u16::DTYPE, data_type(Code::UINT, 16)),
        (u32::DTYPE, data_type(Code::UINT, 32)),
        (f32::DTYPE, data_type(Code::FLOAT, 32)),
    ] {
        assert_eq!(dtype, expected);
    }
}

#[cfg(feature = "half")]
#[test]
fn half_types_are_imported() {
    use half::{bf16, f16};
    let format = |tensor| {
        let imported = from_dlpack(tensor, &Default::default()).unwrap();
        imported.schema.format().to_owned()
    };
    let values = vec![f16::from_f32(1.5), f16::from_f32(-2.0)];
    assert_eq!(format(DlpackTensor::from_vec(values, &[2]).unwrap()), *c"e");
    let values = vec![bf16::from_f32(1.5); 4];
    let tensor = DlpackTensor::from_vec(values, &[4]).unwrap();
    assert_eq!(read::<bf16>(&tensor), [bf16::from_f32(1.5); 4]);
    assert_eq!(format(tensor), *c"S");
}

#[test]
fn scalar_and_empty_tensors_are_created() {
    let tensor = DlpackTensor::from_vec(vec![7u8], &[]).unwrap();
    assert_eq!(
        (tensor.shape().unwrap(), read::<u8>(&tensor)),
        (&[][..], vec![7])
    );
    for shape in [&[0][..], &[3, 0], &[0, i64::MAX]] {
        let tensor = DlpackTensor::from_vec(Vec::<u8>::new(), shape).unwrap();
        assert_eq!(tensor.shape().unwrap(), shape);
        assert!(tensor.data().unwrap().is_null());
    }
}

#[test]
fn from_vec_rejects_wrong_element_count() {
    for shape in [
        &[3][..],
        &[],
        &[0],
        &[-4],
        &[-2, -2],
        &[i64::MAX, 2],
        &[1 << 32, 1 << 32, 4],
        &[-1, 0],
    ] {
        let error = DlpackTensor::from_vec(vec![0u8; 4], shape).unwrap_err();
        assert_eq!(error.code(), EINVAL, "{shape:?}");
    }
    let error = DlpackTensor::from_vec(Vec::<u8>::new(), &[-1, 0]).unwrap_err();
    assert_eq!(error.code(), EINVAL);
    let error = DlpackTensor::from_vec(vec![1u8], &[1; 65]).unwrap_err();
    mentions(&error, "expected 0 to 64 sizes");
}

// The values are inside the owner.
#[test]
fn from_values_keeps_owner() {
    let (owner, drops) = counted();
    let tensor = DlpackTensor::from_values::<i32>(owner, &[2, 2]).unwrap();
    assert_eq!(read::<i32>(&tensor), [1, 2, 3, 4]);
    assert_eq!(tensor.flags().unwrap(), DLPACK_FLAG_BITMASK_READ_ONLY);
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    std::thread::spawn(|| drop(tensor)).join().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn from_values_error_drops_owner() {
    let (owner, drops) = counted();
    DlpackTensor::from_values::<i32>(owner, &[3]).unwrap_err();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    let (owner, drops) = counted();
    DlpackTensor::from_values::<i32>(owner, &[[4].as_slice(), &[1; 64]].concat()).unwrap_err();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn panic_in_owner_drop_is_caught() {
    struct PanicOnDrop;
    impl Drop for PanicOnDrop {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let parts = TensorParts::new(values().cast_mut(), INT32, &[6]).read_only();
    // SAFETY: the values are static.
    drop(unsafe { DlpackTensor::from_parts(&parts, PanicOnDrop) }.unwrap());
}

fn from_parts(parts: &TensorParts<'_>) -> Result<DlpackTensor, Error> {
    // SAFETY: the memory is not read, or belongs to the static values.
    unsafe { DlpackTensor::from_parts(parts, ()) }
}

#[test]
fn from_parts_keeps_fields() {
    let cuda = DLDevice {
        device_type: DLDeviceType(2),
        device_id: 3,
    };
    let data = std::ptr::without_provenance_mut::<c_void>(4096);
    let parts = TensorParts::new(data, INT32, &[2, 3])
        .strides(&[-1, 2])
        .byte_offset(64)
        .device(cuda)
        .flags(DLPACK_FLAG_BITMASK_IS_COPIED)
        .read_only();
    let tensor = from_parts(&parts).unwrap();
    assert_eq!(tensor.strides().unwrap(), Some(&[-1, 2][..]));
    assert_eq!(tensor.device().unwrap(), cuda);
    let raw = tensor.tensor().unwrap();
    assert_eq!((raw.data, raw.byte_offset), (data, 64));
    assert_eq!(tensor.flags().unwrap(), 3);
    assert_eq!(tensor.data().unwrap().addr(), 4096 + 64);
}

#[test]
fn from_parts_empty_tensor_has_null_data() {
    let parts = TensorParts::new(values().cast_mut(), INT32, &[0]).byte_offset(64);
    let tensor = from_parts(&parts).unwrap();
    let raw = tensor.tensor().unwrap();
    assert!(raw.data.is_null());
    assert_eq!(raw.byte_offset, 0);
}

#[test]
fn from_parts_rejects_wrong_lists() {
    let parts = TensorParts::new(values().cast_mut(), INT32, &[2, 3]).strides(&[1]);
    let error = from_parts(&parts).unwrap_err();
    assert_eq!(error.code(), EINVAL);
    mentions(&error, "DLTensor.strides: wrong number: expected 2, got 1");
    let parts = TensorParts::new(values().cast_mut(), INT32, &[2]).strides(&[1, 1]);
    assert_eq!(from_parts(&parts).unwrap_err().code(), EINVAL);
    let negative = TensorParts::new(values().cast_mut(), INT32, &[2, -3]);
    assert_eq!(from_parts(&negative).unwrap_err().code(), EINVAL);
    let scalar = TensorParts::new(values().cast_mut(), INT32, &[]).strides(&[]);
    assert_eq!(read::<i32>(&from_parts(&scalar).unwrap()), [0]);
}
