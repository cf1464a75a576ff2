// SPDX-License-Identifier: Apache-2.0

//! Reads the memory that a struct's pointers refer to.

use std::ffi::c_void;
use std::ptr;

use fletching_abi::{ArrowArray, ArrowSchema, DLTensor};

unsafe extern "C" fn no_op<T>(_: *mut T) {}

#[test]
fn schema_text_accessors_return_fields() {
    let mut schema = ArrowSchema::zeroed();
    schema.format = c"+s".as_ptr();
    schema.name = c"\xff".as_ptr();
    // SAFETY: both are literals.
    unsafe {
        assert_eq!(schema.format_cstr(), None, "of a released schema");
        schema.release = Some(no_op);
        assert_eq!(schema.format_cstr(), Some(c"+s"));
        assert_eq!(schema.name_cstr(), Some(c"\xff"));
        schema.name = ptr::null();
        assert_eq!(schema.name_cstr(), None);
    }
}

macro_rules! test_list_accessors {
    ($($test:ident: $struct:ident.$list:ident, $count:ident, $slice:ident of $value:expr;)*) => {$(
        #[test]
        fn $test() {
            let mut values = [$value; 2];
            let mut object = $struct::zeroed();
            object.release = Some(no_op);
            // SAFETY: the list has two values.
            unsafe {
                object.$count = 2;
                assert!(object.$slice().is_empty(), "of NULL");
                object.$list = values.as_mut_ptr();
                assert_eq!(object.$slice(), [$value; 2]);
                // More pointers do not fit into the address space.
                let largest = isize::MAX as i64 / size_of::<*const u8>() as i64;
                for none in [0, -1, i64::MIN, largest + 1, i64::MAX] {
                    object.$count = none;
                    assert!(object.$slice().is_empty(), "{none}");
                }
                object.$count = 2;
                object.release = None;
                assert!(object.$slice().is_empty(), "of a released struct");
            }
        }
    )*};
}

test_list_accessors! {
    children_slice_of_schema_has_n_children_entries:
        ArrowSchema.children, n_children, children_slice of ptr::dangling_mut::<ArrowSchema>();
    children_slice_of_array_has_n_children_entries:
        ArrowArray.children, n_children, children_slice of ptr::dangling_mut::<ArrowArray>();
    buffers_slice_has_n_buffers_entries: ArrowArray.buffers, n_buffers, buffers_slice of ptr::null::<c_void>();
}

#[test]
fn shape_and_strides_have_ndim_entries() {
    let (mut shape, mut strides) = ([2, 3], [3, 1]);
    let mut tensor = DLTensor::zeroed();
    tensor.ndim = 2;
    tensor.shape = shape.as_mut_ptr();
    // SAFETY: both lists have two numbers.
    unsafe {
        assert_eq!(tensor.shape_slice(), [2, 3]);
        assert!(tensor.strides_slice().is_empty());
        tensor.strides = strides.as_mut_ptr();
        assert_eq!(tensor.strides_slice(), [3, 1]);
        tensor.ndim = -1;
        assert!(tensor.shape_slice().is_empty() && tensor.strides_slice().is_empty());
    }
}
