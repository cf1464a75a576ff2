// SPDX-License-Identifier: Apache-2.0

//! The environment variable `FLETCHING_VALIDATE`: `libfletching` validates what owners import and
//! export. Without the feature `validate` the variable has no effect.

/// Whether the program takes a struct or hands it out. Numbers of `fletching/handover.h`.
#[derive(Clone, Copy)]
pub(crate) enum Handover {
    Import = 0,
    Export = 1,
}

/// The struct at an address. Numbers of `fletching/handover.h`.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Schema = 0,
    Array = 1,
    DeviceArray = 2,
    Stream = 3,
    DeviceStream = 4,
    #[cfg(feature = "dlpack")]
    Tensor = 5,
    #[cfg(feature = "dlpack")]
    LegacyTensor = 6,
    #[cfg(feature = "async")]
    Handler = 7,
}

impl Handover {
    /// Wraps the struct in place if the variable is set. For a tensor and a handler, `address`
    /// points to their address.
    ///
    /// # Safety
    ///
    /// `address` points to a struct of this kind that the caller owns and that conforms to the
    /// specification.
    #[inline]
    pub(crate) unsafe fn validate<T>(self, kind: Kind, address: *mut T) {
        #[cfg(feature = "validate")]
        if crate::validate::switch::is_set() {
            // SAFETY: guaranteed by the caller.
            unsafe { crate::validate::switch::hand_over(self as i32, kind as i32, address.cast()) }
        }
        #[cfg(not(feature = "validate"))]
        let _ = (self, kind, address);
    }
}
