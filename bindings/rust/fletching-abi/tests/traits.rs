// SPDX-License-Identifier: Apache-2.0

//! The `Copy`, comparison and thread traits of the types.

use fletching_abi::*;

/// Whether a type has a trait. If so, the inherent constant takes precedence over the constant of
/// the trait `Fallback`.
macro_rules! has {
    ($type:ty: $($bound:tt)+) => {{
        struct Probe<T>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "not of a type that has the trait")]
        trait Fallback {
            const HAS: bool = false;
        }
        impl<T> Fallback for Probe<T> {}
        #[allow(dead_code, reason = "not of a type that lacks the trait")]
        impl<T: $($bound)+> Probe<T> {
            const HAS: bool = true;
        }
        Probe::<$type>::HAS
    }};
}

macro_rules! traits_of {
    ($($type:ident)*) => {
        [$((stringify!($type), [
            has!($type: Copy),
            has!($type: Eq + std::hash::Hash),
            has!($type: Send),
            has!($type: Sync),
        ])),*]
    };
}

#[test]
fn owning_structs_are_neither_copy_nor_sync() {
    let owning = traits_of!(
        ArrowSchema ArrowArray ArrowDeviceArray ArrowArrayStream ArrowDeviceArrayStream
        ArrowAsyncTask ArrowAsyncProducer ArrowAsyncDeviceStreamHandler
        DLManagedTensor DLManagedTensorVersioned
    );
    for (name, traits) in owning {
        assert_eq!(traits, [false; 4], "{name}");
    }
}

#[test]
fn number_types_are_copy_eq_and_sync() {
    for (name, traits) in traits_of!(
        ArrowDeviceType DLDeviceType DLDataTypeCode DLPackVersion DLDevice DLDataType
    ) {
        assert_eq!(traits, [true; 4], "{name}");
    }
}

#[test]
fn view_structs_are_only_copy() {
    for (name, traits) in traits_of!(DLTensor DLPackExchangeAPIHeader) {
        assert_eq!(traits, [true, false, false, false], "{name}");
    }
}

#[test]
fn exchange_table_is_only_sync() {
    let [(_, traits)] = traits_of!(DLPackExchangeAPI);
    assert_eq!(traits, [false, false, false, true]);
}

#[test]
fn named_integers_round_trip_through_numbers() {
    assert_eq!(ArrowDeviceType::from(2), ArrowDeviceType::CUDA);
    assert_eq!(i32::from(ArrowDeviceType(9999)), 9999);
    assert_eq!(i32::from(DLDeviceType::from(-1)), -1);
    assert_eq!(u8::from(DLDataTypeCode::from(99)), 99);
}

#[test]
fn default_is_zeroed() {
    assert!(ArrowArray::default().is_released());
    assert_eq!(ArrowDeviceArray::default().reserved, [0; 3]);
    let scalar = DLDataType {
        code: DLDataTypeCode::BFLOAT,
        bits: 16,
        lanes: 1,
    };
    assert_ne!(scalar, DLDataType::default());
    let copy = scalar;
    assert_eq!(scalar, copy);
}
