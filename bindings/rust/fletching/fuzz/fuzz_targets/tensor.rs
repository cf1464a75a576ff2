// SPDX-License-Identifier: Apache-2.0

//! Valid and malformed DLPack tensors from producers: an import reads no values and calls the
//! deleter once, and an accepted tensor is exported unchanged.

#![no_main]

use std::cell::Cell;
use std::ptr;

use fletching::abi::{
    ArrowDeviceType, DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensorVersioned,
    DLPackVersion, DLTensor, DLPACK_MAJOR_VERSION,
};
use fletching::dlpack::{
    from_dlpack, to_dlpack, Dimensions, DlpackTensor, ExportOptions, ImportOptions, Imported,
};
use fletching_fuzz::{nowhere, Input};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static DELETED: Cell<u32> = const { Cell::new(0) };
}

unsafe extern "C" fn delete(_: *mut DLManagedTensorVersioned) {
    DELETED.set(DELETED.get() + 1);
}

/// Makes the tensor that the input describes, with at most 65 dimensions, one more than allowed.
fn tensor(
    mut input: Input<'_>,
    shape: &mut Vec<i64>,
    strides: &mut Vec<i64>,
) -> DLManagedTensorVersioned {
    let input = &mut input;
    let flags = input.byte();
    let is = |bit: u8| flags >> bit & 1 == 1;
    let dimensions = usize::from(input.byte() % 66);
    shape.extend((0..dimensions).map(|_| input.number()));
    strides.extend((0..dimensions).map(|_| input.number()));
    let tensor = DLTensor {
        data: if is(0) { ptr::null_mut() } else { nowhere() },
        device: DLDevice {
            device_type: DLDeviceType(i32::from(input.byte() % 20)),
            device_id: input.number() as i32,
        },
        ndim: if is(1) {
            input.number() as i32
        } else {
            dimensions as i32
        },
        dtype: DLDataType {
            code: DLDataTypeCode(input.byte() % 20),
            bits: input.byte(),
            lanes: if is(2) { input.two() } else { 1 },
        },
        shape: if is(3) {
            ptr::null_mut()
        } else {
            shape.as_mut_ptr()
        },
        strides: if is(4) {
            ptr::null_mut()
        } else {
            strides.as_mut_ptr()
        },
        byte_offset: if is(5) {
            input.eight() as u64
        } else {
            input.byte().into()
        },
    };
    // More dimensions than list entries would violate the safety contract, so `ndim` is out of
    // range then.
    let ndim = if tensor.ndim > dimensions as i32 {
        65 + tensor.ndim % 8
    } else {
        tensor.ndim
    };
    DLManagedTensorVersioned {
        version: DLPackVersion {
            major: if is(6) {
                input.byte().into()
            } else {
                DLPACK_MAJOR_VERSION
            },
            minor: 3,
        },
        manager_ctx: ptr::null_mut(),
        deleter: Some(delete),
        flags: if is(7) { input.byte().into() } else { 0 },
        dl_tensor: DLTensor { ndim, ..tensor },
    }
}

/// Checks that a tensor imported without a copy has the same shape when it is exported.
fn export(imported: &mut Imported, original: &DLTensor, options: &ImportOptions) {
    let options = ExportOptions::default().as_storage(options.as_storage);
    let again = match to_dlpack(&imported.schema, &mut imported.array, &options) {
        Ok(again) => again,
        // Lanes became one more dimension.
        Err(error) => return assert!(error.message().contains("too many dimensions"), "{error}"),
    };
    let again = again.tensor().unwrap();
    // SAFETY: the original was imported, so it is valid; the other tensor was just exported.
    let (shape, ours) = unsafe { (original.shape_slice(), again.shape_slice()) };
    assert!(ours.starts_with(shape), "{shape:?} {ours:?}");
    // Without elements, the address is NULL. Otherwise it is the tensor's, plus the offset.
    assert_eq!(again.data.is_null(), shape.contains(&0), "{shape:?}");
    let moved = again.data.addr().wrapping_sub(nowhere().addr()) as u64;
    assert!(
        again.data.is_null() || moved <= original.byte_offset,
        "{moved}"
    );
}

fuzz_target!(|bytes: &[u8]| {
    let plain = ImportOptions::default();
    let lists = ImportOptions::default()
        .dimensions(Dimensions::FixedSizeLists)
        .as_storage(true);
    for options in [&plain, &lists] {
        let (mut shape, mut strides) = (Vec::new(), Vec::new());
        let mut raw = tensor(Input(bytes), &mut shape, &mut strides);
        let original = DLTensor { ..raw.dl_tensor };
        // SAFETY: the lists have at least as many numbers as the tensor says, or the tensor must be
        // rejected before they are read.
        let owner = unsafe { DlpackTensor::from_raw(&mut raw) }.unwrap();
        match from_dlpack(owner, options) {
            Ok(mut imported) => {
                assert_eq!(DELETED.get(), 0);
                assert!(imported.array.length() >= 0 && imported.array.offset() >= 0);
                let device = ArrowDeviceType::from(original.device.device_type);
                assert_eq!(imported.array.device_type(), device);
                export(&mut imported, &original, options);
            }
            Err(error) => assert!(!error.message().is_empty()),
        }
        assert_eq!(DELETED.take(), 1);
    }
});
