// SPDX-License-Identifier: Apache-2.0

//! The JSON parameters of arrow.fixed_shape_tensor: they are read or rejected, and a tensor made
//! with them keeps its shape in a round trip.

#![no_main]

use fletching::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use fletching::dlpack::{from_dlpack, to_dlpack, ImportOptions};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, DeviceArray, Node, SchemaBuilder,
};
use libfuzzer_sys::fuzz_target;

/// The number of elements of a value. Many shapes have these sizes.
const SIZES: [i64; 4] = [0, 1, 6, 24];
const PARAMETERS: &str = "ARROW:extension:metadata";

/// Makes two fixed-size lists of bytes.
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
        // SAFETY: the tensor was just exported.
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
        // The position of a dimension of size 1 is arbitrary, so the result may differ.
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
