// SPDX-License-Identifier: Apache-2.0

//! The parameters of arrow.fixed_shape_tensor, which are JSON: they are read or refused, and a tensor
//! that is made with them comes back with the same shape.

#![no_main]

use fletching::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use fletching::dlpack::{from_dlpack, to_dlpack, ImportOptions};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, DeviceArray, Node, SchemaBuilder,
};
use libfuzzer_sys::fuzz_target;

/// So many elements has a value; of these many shapes are made.
const SIZES: [i64; 4] = [0, 1, 6, 24];
const PARAMETERS: &str = "ARROW:extension:metadata";

/// Two fixed-size lists of bytes.
fn lists(size: i64) -> Array {
    let capacity = ArrayCapacity {
        arrays: 1,
        buffers: 3,
    };
    let mut builder = ArrayBuilder::new(capacity, vec![0u8; 2 * size as usize + 1]).unwrap();
    let values = builder.object().as_ptr().cast();
    builder.set(Node::ROOT, ArrayValues::of(2), &[std::ptr::null()]);
    let child = builder.add_children(Node::ROOT, 1);
    builder.set(
        child,
        ArrayValues::of(2 * size),
        &[std::ptr::null(), values],
    );
    builder.finish().unwrap()
}

fuzz_target!(|bytes: &[u8]| {
    for size in SIZES {
        let schema = SchemaBuilder::new(format!("+w:{size}"))
            .metadata("ARROW:extension:name", "arrow.fixed_shape_tensor")
            .metadata(PARAMETERS, bytes)
            .child(SchemaBuilder::new("C").name("item"))
            .build()
            .unwrap();
        let mut array = DeviceArray::from(lists(size));
        let tensor = match to_dlpack(&schema, &mut array, &Default::default()) {
            Ok(tensor) => tensor,
            Err(error) => {
                assert!(!array.is_released());
                assert!(error.message().is_ascii() || !bytes.is_ascii(), "{error}");
                continue;
            }
        };
        let raw = tensor.tensor().unwrap();
        // SAFETY: a tensor of ours.
        let (shape, strides) = unsafe { (raw.shape_slice(), raw.strides_slice()) };
        assert_eq!(shape[0], 2);
        match size {
            0 => assert!(shape.contains(&0)),
            _ => assert_eq!(shape[1..].iter().product::<i64>(), size),
        }
        if size > 0 {
            let reach = shape
                .iter()
                .zip(strides)
                .map(|(n, stride)| (n - 1) * stride);
            assert_eq!(reach.sum::<i64>(), 2 * size - 1, "{shape:?} {strides:?}");
        }
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        // A dimension that is not repeated may be anywhere, so the text need not be the same.
        let imported = from_dlpack(tensor, &ImportOptions::default()).unwrap();
        assert!(imported.read_only);
        let mut array = imported.array;
        let again = to_dlpack(&imported.schema, &mut array, &Default::default()).unwrap();
        // SAFETY: as above.
        unsafe {
            assert_eq!(
                again.as_ptr().as_ref().unwrap().flags,
                DLPACK_FLAG_BITMASK_READ_ONLY
            );
            let raw = again.tensor().unwrap();
            assert_eq!(raw.shape_slice(), shape);
            let same = |axis: usize| shape[axis] < 2 || raw.strides_slice()[axis] == strides[axis];
            assert!(
                size == 0 || (0..shape.len()).all(same),
                "{shape:?} {strides:?}"
            );
        }
    }
});
