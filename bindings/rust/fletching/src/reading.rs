// SPDX-License-Identifier: Apache-2.0

//! Buffers in host memory as slices.

use crate::error::Error;
use crate::owner::Array;
use crate::values::Primitive;

/// The bits of a bitmap or of boolean values, starting at the array's offset.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    offset: usize,
    length: usize,
}

impl<'a> Bits<'a> {
    /// The number of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bit `index`, or `None` if it is out of range.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.length).then(|| {
            let place = self.offset + index;
            self.bytes[place / 8] >> (place % 8) & 1 == 1
        })
    }

    /// The bits in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> + use<'a> {
        let bits = *self;
        (0..self.length).map(move |index| bits.get(index).expect("it is below the length"))
    }
}

/// Reading buffers. The functions check the request against the struct. They cannot check the type,
/// size and location of the buffers; see "Safety" of each function.
///
/// ```
/// use fletching::Array;
///
/// let array = Array::from_options([Some(1i32), None, Some(3)]);
/// // SAFETY: the array was built here, of values of this type, in host memory.
/// let (values, validity) = unsafe { (array.values::<i32>()?, array.validity()?.unwrap()) };
/// let sum: i32 = values.iter().zip(validity.iter()).filter(|pair| pair.1).map(|pair| pair.0).sum();
/// assert_eq!(sum, 4);
/// # Ok::<(), fletching::Error>(())
/// ```
impl Array {
    /// The values of an array of numbers, which are buffer 1, starting at the array's offset. The
    /// value of a null is unspecified.
    ///
    /// Errors: as for [`buffer`](Self::buffer); EINVAL also unless there are two buffers, and for a
    /// negative length or offset.
    ///
    /// # Safety
    ///
    /// As for [`buffer`](Self::buffer): the values of buffer 1 are of type `T`.
    pub unsafe fn values<T: Primitive>(&self) -> Result<&[T], Error> {
        let (offset, length) = self.range("values", 2)?;
        if self.buffers().len() != 2 {
            let got = self.buffers().len();
            return Err(Error::invalid(format!(
                "values: n_buffers: expected 2, got {got}"
            )));
        }
        // SAFETY: the caller guarantees that the buffer is valid.
        let all = unsafe { self.buffer(1, offset.saturating_add(length))? };
        Ok(&all[offset..])
    }

    /// The values of an array of booleans, which are buffer 1, starting at the array's offset.
    ///
    /// Errors: as for [`values`](Self::values).
    ///
    /// # Safety
    ///
    /// As for [`buffer`](Self::buffer): buffer 1 has a bit for each value.
    pub unsafe fn bools(&self) -> Result<Bits<'_>, Error> {
        // SAFETY: the caller guarantees that the buffer is valid.
        unsafe { self.bits("bools", 1) }
    }

    /// The validity of each value, or `None` if the array has no bitmap and all values are valid.
    ///
    /// Errors: as for [`buffer`](Self::buffer); EINVAL also for an array without buffers, and for a
    /// negative length or offset.
    ///
    /// # Safety
    ///
    /// As for [`buffer`](Self::buffer): the type has a validity bitmap. Every type has one except
    /// null, unions and run-end encoded.
    pub unsafe fn validity(&self) -> Result<Option<Bits<'_>>, Error> {
        match self.buffers().first() {
            Some(bitmap) if bitmap.is_null() => Ok(None),
            // SAFETY: the caller guarantees that the buffer is valid.
            _ => unsafe { self.bits("validity", 0) }.map(Some),
        }
    }

    /// The first `count` values of buffer `index`, including those before the array's offset. The
    /// offsets of strings and lists have `offset + length + 1` values.
    ///
    /// Errors: EINVAL for a released array, an index that is out of range, and an address that is
    /// NULL or not aligned for `T`.
    ///
    /// # Safety
    ///
    /// The buffer has `count` values of type `T` in memory that the CPU can read, and nothing
    /// writes to it: the device array's event, if any, has completed.
    pub unsafe fn buffer<T: Primitive>(&self, index: usize, count: usize) -> Result<&[T], Error> {
        let wrong = |what: &str| Err(Error::invalid(format!("buffer {index}: {what}")));
        let Some(&address) = self.buffers().get(index) else {
            return wrong(&format!(
                "no such buffer: expected an index below {}",
                self.buffers().len()
            ));
        };
        if count == 0 {
            return Ok(&[]);
        }
        let first = address.cast::<T>();
        if first.is_null() {
            return wrong(&format!("NULL: expected {count} values"));
        }
        if !first.is_aligned() {
            return wrong(&format!(
                "not aligned: expected a multiple of {}",
                align_of::<T>()
            ));
        }
        if count > isize::MAX as usize / size_of::<T>() {
            return wrong(&format!(
                "too large: expected at most the size of memory, got {count} values"
            ));
        }
        // SAFETY: the caller guarantees that the buffer has `count` values.
        Ok(unsafe { std::slice::from_raw_parts(first, count) })
    }

    /// # Safety
    ///
    /// As for [`buffer`](Self::buffer), for a bitmap.
    unsafe fn bits(&self, operation: &str, index: usize) -> Result<Bits<'_>, Error> {
        let (offset, length) = self.range(operation, index + 1)?;
        let count = offset.saturating_add(length).div_ceil(8);
        Ok(Bits {
            // SAFETY: the caller guarantees that the buffer is valid.
            bytes: unsafe { self.buffer(index, count)? },
            offset,
            length,
        })
    }

    fn range(&self, operation: &str, buffers: usize) -> Result<(usize, usize), Error> {
        let got = self.buffers().len();
        if got < buffers {
            return Err(Error::invalid(format!(
                "{operation}: n_buffers: expected at least {buffers}, got {got}"
            )));
        }
        let size = |name: &str, value: i64| {
            usize::try_from(value).map_err(|_| {
                Error::invalid(format!(
                    "{operation}: {name}: expected 0 or more, got {value}"
                ))
            })
        };
        Ok((
            size("offset", self.offset())?,
            size("length", self.length())?,
        ))
    }
}
