// SPDX-License-Identifier: Apache-2.0

//! Buffers in host memory as slices.

use crate::error::Error;
use crate::owner::Array;
use crate::values::Primitive;

/// The bits of a bitmap or of boolean values, from the array's offset on.
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

    /// Bit `index`; `None` beyond the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.length).then(|| {
            let place = self.offset + index;
            self.bytes[place / 8] >> (place % 8) & 1 == 1
        })
    }

    /// The bits in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> + use<'a> {
        let bits = *self;
        (0..self.length).map(move |index| bits.get(index).expect("it is below the length"))
    }
}

/// Reading. The functions compare the request with the struct; what is in a buffer, and where, only the
/// caller knows: see "Safety" of each.
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
    /// The values of an array of numbers, from its offset on: buffer 1. A null has an unspecified value.
    ///
    /// Errors: as for [`buffer`](Self::buffer); EINVAL also for another number of buffers than two,
    /// and for a negative length or offset.
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
        // SAFETY: the caller vouches for the buffer.
        let all = unsafe { self.buffer(1, offset.saturating_add(length))? };
        Ok(&all[offset..])
    }

    /// The values of an array of booleans, from its offset on: buffer 1.
    ///
    /// Errors: as for [`values`](Self::values).
    ///
    /// # Safety
    ///
    /// As for [`buffer`](Self::buffer): buffer 1 has a bit for each value.
    pub unsafe fn bools(&self) -> Result<Bits<'_>, Error> {
        // SAFETY: the caller vouches for the buffer.
        unsafe { self.bits("bools", 1) }
    }

    /// Which values are not null; `None` for an array without a bitmap, whose values are all valid.
    ///
    /// Errors: as for [`buffer`](Self::buffer); EINVAL also for an array without buffers, and for a
    /// negative length or offset.
    ///
    /// # Safety
    ///
    /// As for [`buffer`](Self::buffer): the type has a validity bitmap, which every type but null, unions
    /// and run-end encoded has.
    pub unsafe fn validity(&self) -> Result<Option<Bits<'_>>, Error> {
        match self.buffers().first() {
            Some(bitmap) if bitmap.is_null() => Ok(None),
            // SAFETY: the caller vouches for the buffer.
            _ => unsafe { self.bits("validity", 0) }.map(Some),
        }
    }

    /// The first `count` values of buffer `index`, those before the array's offset included. Offsets of
    /// texts and lists have one more than offset and length together.
    ///
    /// Errors: EINVAL for a released array, an index that is out of range, and for an address that is NULL
    /// or not aligned for `T`.
    ///
    /// # Safety
    ///
    /// The buffer holds `count` values of type `T`, in memory that the CPU can read, and nothing writes to
    /// it: the event of the device array, if there is one, has happened.
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
                "too large: expected what memory can hold, got {count} values"
            ));
        }
        // SAFETY: the caller vouches for the values.
        Ok(unsafe { std::slice::from_raw_parts(first, count) })
    }

    /// # Safety
    ///
    /// As for [`buffer`](Self::buffer), of a bitmap.
    unsafe fn bits(&self, operation: &str, index: usize) -> Result<Bits<'_>, Error> {
        let (offset, length) = self.range(operation, index + 1)?;
        let count = offset.saturating_add(length).div_ceil(8);
        Ok(Bits {
            // SAFETY: the caller vouches for the buffer.
            bytes: unsafe { self.buffer(index, count)? },
            offset,
            length,
        })
    }

    /// The offset and the length.
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
