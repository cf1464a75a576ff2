// SPDX-License-Identifier: Apache-2.0

//! Values as the oracle passes them: their bits, zero-extended to 64. Of a larger value, which only
//! a wrong declaration has, the first 64 bits.

use std::mem::MaybeUninit;

/// Returns the bits of the value at `place`.
///
/// # Safety
///
/// `place` points to an initialized value without padding, which need not be valid.
pub unsafe fn load<T>(place: *const T) -> u64 {
    // SAFETY: the caller guarantees that `place` points to a `T`; each arm reads exactly its bytes.
    unsafe {
        match size_of::<T>() {
            0 => 0,
            1 => place.cast::<u8>().read_unaligned().into(),
            2 => place.cast::<u16>().read_unaligned().into(),
            4 => place.cast::<u32>().read_unaligned().into(),
            8.. => place.cast::<u64>().read_unaligned(),
            size => panic!("no value has {size} bytes"),
        }
    }
}

/// Writes a value's bits to `place`.
///
/// # Safety
///
/// `place` is valid for writes.
pub unsafe fn store<T>(place: *mut T, bits: u64) {
    // SAFETY: the caller guarantees that `place` is valid for a `T`; each arm writes exactly its
    // bytes.
    unsafe {
        match size_of::<T>() {
            0 => (),
            1 => place.cast::<u8>().write_unaligned(bits as u8),
            2 => place.cast::<u16>().write_unaligned(bits as u16),
            4 => place.cast::<u32>().write_unaligned(bits as u32),
            8.. => place.cast::<u64>().write_unaligned(bits),
            size => panic!("no value has {size} bytes"),
        }
    }
}

/// Returns the bits of an argument or a result.
pub fn to_bits<T>(value: T) -> u64 {
    // SAFETY: arguments and results are integers and pointers: initialized and without padding.
    unsafe { load(&raw const value) }
}

/// Returns the argument or result with these bits.
///
/// # Safety
///
/// All bit patterns are valid for T: an integer, a raw pointer, an optional function pointer or
/// `()`.
pub unsafe fn from_bits<T>(bits: u64) -> T {
    let mut value = MaybeUninit::zeroed();
    // SAFETY: the memory is local and initialized, and all bit patterns are valid.
    unsafe {
        store(value.as_mut_ptr(), bits);
        value.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_keep_width() {
        assert_eq!(to_bits(-1_i32), 0xffff_ffff);
        assert_eq!(to_bits(i64::MIN), 1 << 63);
        assert_eq!(to_bits(()), 0);
        // SAFETY: the types are integers.
        let (code, count): (i32, i64) = unsafe { (from_bits(0xffff_ffff), from_bits(1 << 63)) };
        assert_eq!((code, count), (-1, i64::MIN));
    }
}
