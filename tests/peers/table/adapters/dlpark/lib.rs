//! dlpark behind the functions of fletching/roles.h.

use std::os::raw::c_int;

use dlpark::allocation::dynamic::Initialized;
use dlpark::ffi::DLManagedTensorVersioned;
use dlpark::{Managed, TryFromDlpack};
use ndarray::{Array2, ArrayViewD};

type Tensor = Managed<DLManagedTensorVersioned>;

/// Linux's ENOTSUP, for a tensor of another type than i32, and for a broken one.
const ENOTSUP: c_int = 95;

/// # Safety
/// `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn export_tensor(out: *mut *mut DLManagedTensorVersioned) -> c_int {
    let array = Box::new(Array2::<f32>::ones((2, 3)));
    let Ok(initialized) = Initialized::<DLManagedTensorVersioned>::try_from(array) else {
        return ENOTSUP;
    };
    *out = initialized.finish().into_raw();
    0
}

/// # Safety
/// The caller gives the tensor away.
#[no_mangle]
pub unsafe extern "C" fn validate_tensor(tensor: *mut DLManagedTensorVersioned) -> c_int {
    match Tensor::from_raw(tensor) {
        Ok(tensor) if tensor.validate().is_ok() => 0,
        _ => ENOTSUP,
    }
}

/// # Safety
/// The caller gives the tensor away.
#[no_mangle]
pub unsafe extern "C" fn read_tensor(tensor: *mut DLManagedTensorVersioned) -> c_int {
    let Ok(tensor) = Tensor::from_raw(tensor) else {
        return ENOTSUP;
    };
    match ArrayViewD::<i32>::try_from_dlpack(&tensor, ()) {
        Ok(view) => view
            .iter()
            .for_each(|value| _ = std::hint::black_box(value)),
        Err(_) => return ENOTSUP,
    }
    0
}
