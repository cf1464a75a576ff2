// SPDX-License-Identifier: Apache-2.0

//! Random tensors, imported and exported again. The elements must not change.

use fletching::abi::{DLDataType, DLDataTypeCode as Code};
use fletching::dlpack::{
    from_dlpack, to_dlpack, Dimensions, DlpackTensor, ImportOptions, Strided, TensorParts,
};
use libc::ENOTSUP;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::*;

const TYPES: [(Code, u8); 12] = [
    (Code::INT, 8),
    (Code::UINT, 16),
    (Code::INT, 32),
    (Code::UINT, 64),
    (Code::FLOAT, 16),
    (Code::FLOAT, 64),
    (Code::BOOL, 8),
    (Code::BFLOAT, 16),
    (Code::FLOAT8_E4M3FN, 8),
    (Code::COMPLEX, 32),
    (Code::COMPLEX, 64),
    (Code::COMPLEX, 128),
];

/// A tensor in random memory.
#[derive(Clone, Debug)]
struct Case {
    dtype: DLDataType,
    /// For each dimension: its size, the number of elements between two steps, and whether it is
    /// reversed.
    dimensions: Vec<(i64, i64, bool)>,
    /// The dimensions, innermost first.
    order: Vec<usize>,
    /// The number of elements before the lowest one.
    before: i64,
}

fn cases() -> impl Strategy<Value = Case> {
    // Most tensors have no gaps, otherwise an import without a copy would rarely succeed.
    let gap = prop_oneof![6 => Just(0i64), 1 => 0..3i64];
    let turned = prop_oneof![9 => Just(false), 1 => Just(true)];
    let size = prop_oneof![1 => Just(0i64), 20 => 1..5i64];
    vec((size, gap, turned), 0..5)
        .prop_flat_map(|dimensions| {
            let plain: Vec<usize> = (0..dimensions.len()).rev().collect();
            let order = prop_oneof![Just(plain.clone()), Just(plain).prop_shuffle()];
            (Just(dimensions), order, select(&TYPES[..]), 0..4i64)
        })
        .prop_map(|(dimensions, order, (code, bits), before)| Case {
            dtype: data_type(code, bits),
            dimensions,
            order,
            before,
        })
}

impl Case {
    fn item(&self) -> i64 {
        i64::from(self.dtype.bits / 8)
    }

    fn tensor(&self) -> DlpackTensor {
        let shape: Vec<i64> = self
            .dimensions
            .iter()
            .map(|dimension| dimension.0)
            .collect();
        let (mut strides, mut step, mut first) = (vec![0; shape.len()], 1, self.before);
        for &axis in &self.order {
            let (size, gap, is_turned) = self.dimensions[axis];
            strides[axis] = if is_turned { -step } else { step };
            if is_turned {
                first += step * (size - 1).max(0);
            }
            step *= size.max(1) + gap;
        }
        // Each byte differs from its neighbors. 16 bytes is the largest alignment.
        let bytes = ((self.before + step) * self.item()) as usize;
        let words = (0..bytes.div_ceil(16) as u128)
            .map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let mut memory: Vec<u128> = words.collect();
        let parts = TensorParts::new(memory.as_mut_ptr().cast(), self.dtype, &shape)
            .strides(&strides)
            .byte_offset((first * self.item()) as u64);
        // SAFETY: the memory contains every element.
        unsafe { DlpackTensor::from_parts(&parts, memory) }.unwrap()
    }
}

/// Returns the bytes of the elements in row-major order.
fn elements(tensor: &DlpackTensor) -> Vec<u8> {
    let (shape, strides) = (tensor.shape().unwrap(), tensor.strides().unwrap().unwrap());
    let item = usize::from(tensor.dtype().unwrap().bits / 8);
    let data = tensor.data().unwrap().cast::<u8>();
    let mut bytes = Vec::new();
    let mut index = vec![0; shape.len()];
    if shape.contains(&0) {
        return bytes;
    }
    loop {
        let at: i64 = index.iter().zip(strides).map(|(at, step)| at * step).sum();
        let at = data.wrapping_offset(at as isize * item as isize);
        // SAFETY: the address points to an element.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(at, item) });
        let Some(axis) = (0..shape.len())
            .rev()
            .find(|axis| index[*axis] + 1 < shape[*axis])
        else {
            return bytes;
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

proptest! {
    #[test]
    fn random_tensors_keep_elements(case in cases(), is_lists: bool) {
        let dimensions = match is_lists {
            true => Dimensions::FixedSizeLists,
            false => Dimensions::FixedShapeTensor,
        };
        let without_copy = ImportOptions::default().dimensions(dimensions);
        let with_copy = without_copy.strided(Strided::Copy(readable()));
        let original = case.tensor();
        let expected = elements(&original);
        let mut shape = original.shape().unwrap().to_vec();
        if shape.is_empty() {
            shape.push(1); // an array of length 1
        }
        let is_empty = shape.contains(&0);
        for options in [without_copy, with_copy] {
            let mut imported = match from_dlpack(case.tensor(), &options) {
                Ok(imported) => imported,
                Err(error) => {
                    let is_refused = matches!(options.strided, Strided::Refuse);
                    prop_assert!(is_refused && error.code() == ENOTSUP, "{}", error);
                    continue;
                }
            };
            prop_assert!(!imported.read_only);
            let mut exported = to_dlpack(&imported.schema, &mut imported.array, &super::support::options());
            let tensor = exported.as_mut().unwrap();
            prop_assert_eq!(tensor.dtype().unwrap(), case.dtype);
            prop_assert_eq!(tensor.shape().unwrap(), &shape[..]);
            prop_assert_eq!(tensor.data().unwrap().is_null(), is_empty);
            prop_assert_eq!(elements(tensor), &expected[..]);
        }
    }
}
