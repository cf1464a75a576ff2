// SPDX-License-Identifier: Apache-2.0

//! An array with all its children, made from buffers and from the object that owns them, in one
//! allocation.

use std::ffi::c_void;
use std::ptr;

use fletching_abi::{ArrowArray, ArrowDeviceArray, ArrowDeviceType, EventPointer};

use crate::block::Block;
use crate::error::Error;
use crate::owner::{Array, DeviceArray, Owner};
use crate::tree::MAX_STRUCTS;

/// What a builder makes room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayCapacity {
    /// Children and dictionaries at every depth; the array itself is not counted.
    pub arrays: usize,
    /// Buffers of all arrays, its own included.
    pub buffers: usize,
}

/// What an array says about its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayValues {
    /// The number of values.
    pub length: i64,
    /// The number of nulls; -1 when it is not counted.
    pub null_count: i64,
    /// The index of the first value in every buffer.
    pub offset: i64,
}

impl ArrayValues {
    /// `length` values without nulls, from the beginning of the buffers on.
    #[must_use]
    pub const fn of(length: i64) -> Self {
        Self {
            length,
            null_count: 0,
            offset: 0,
        }
    }

    fn is_plausible(&self) -> bool {
        (self.length | self.offset) >= 0 && (-1..=self.length).contains(&self.null_count)
    }
}

/// One array in a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(usize);

impl Node {
    /// The array itself.
    pub const ROOT: Self = Self(0);

    /// The sibling that was added `index` places after this one.
    #[must_use]
    pub const fn sibling(self, index: usize) -> Self {
        Self(self.0.saturating_add(index))
    }
}

/// Builds an array in place, over the object that owns its data.
///
/// ```
/// use fletching::{ArrayBuilder, ArrayCapacity, ArrayValues, Node};
///
/// let columns = [vec![1i32, 2, 3], vec![4, 5, 6]];
/// let capacity = ArrayCapacity { arrays: 2, buffers: 5 };
/// let mut builder = ArrayBuilder::new(capacity, columns)?;
/// builder.set(Node::ROOT, ArrayValues::of(3), &[std::ptr::null()]);
/// let first = builder.add_children(Node::ROOT, 2);
/// for index in 0..2 {
///     let values = builder.object()[index].as_ptr().cast();
///     builder.set(first.sibling(index), ArrayValues::of(3), &[std::ptr::null(), values]);
/// }
/// let array = builder.finish()?;
/// assert_eq!(array.children()[1].unwrap().length(), 3);
/// # Ok::<(), fletching::Error>(())
/// ```
///
/// There is one allocation. It holds the object, the structs of the children and the lists of
/// buffers and children, and lives until the last of the structs is released: the array, or a child
/// that was moved out of it. Then the object is dropped, on the thread that released last. The
/// buffers belong to the object or have to live as long as it does.
///
/// A request that cannot be met changes nothing, and neither does any after it; `finish` returns
/// the error, EINVAL with the reason. So no request needs a check of its own.
///
/// Text: Arrow C data interface, "Release callback semantics for producers".
pub struct ArrayBuilder<T: Send + 'static> {
    block: *mut Block<ArrowArray, T>,
    structs: *mut ArrowArray,
    pointers: *mut *mut ArrowArray,
    buffers: *mut *const c_void,
    capacity: ArrayCapacity,
    used: ArrayCapacity,
    set: usize,
    fault: Option<String>,
}

// SAFETY: the builder owns the block and what is in it.
unsafe impl<T: Send> Send for ArrayBuilder<T> {}

impl<T: Send + 'static> ArrayBuilder<T> {
    /// Moves `object` in. Errors: ENOMEM for 2^22 arrays and more, and for a capacity that no
    /// memory has.
    pub fn new(capacity: ArrayCapacity, object: T) -> Result<Self, Error> {
        let block = (capacity.arrays < MAX_STRUCTS as usize)
            .then(|| Block::new(capacity.arrays + 1, capacity.buffers, object))
            .flatten();
        let block: *mut Block<ArrowArray, T> =
            block.ok_or_else(|| Error::new(libc::ENOMEM, "array builder: no memory"))?;
        // SAFETY: the block was just made, with room for the root.
        unsafe {
            let (structs, pointers, buffers) = Block::parts(block);
            (*structs).release = None;
            Ok(Self {
                block,
                structs,
                pointers,
                buffers,
                capacity,
                used: ArrayCapacity::default(),
                set: 0,
                fault: None,
            })
        }
    }

    /// The object, at the address where it stays: an event in it has the stable address that the
    /// interface asks for.
    #[must_use]
    pub fn object(&self) -> &T {
        // SAFETY: the block lives as long as the builder, which hands out no other reference.
        unsafe { &*Block::object(self.block) }
    }

    /// The same, to be changed.
    #[must_use]
    pub fn object_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *Block::object(self.block) }
    }

    /// Says what is in an array, once for each. The list of buffers is copied: addresses where the
    /// data is, on the device as a rule, or NULL.
    pub fn set(&mut self, node: Node, values: ArrayValues, buffers: &[*const c_void]) -> &mut Self {
        if !values.is_plausible() {
            return self.refuse(
                "length, offset or null_count out of range: expected 0 or more, null_count -1 to \
                 length",
            );
        }
        let Some(array) = self.added(node) else {
            return self.refuse("no such child or dictionary: expected one that was added");
        };
        // SAFETY: the struct was added, so its release is there to be read.
        if unsafe { (*array).release.is_some() } {
            return self.refuse("array set twice: expected one call for each added array");
        }
        if self.fault.is_some() || buffers.len() > self.capacity.buffers - self.used.buffers {
            return self.refuse_buffers(buffers.len());
        }
        // SAFETY: there is room for so many buffers, and the struct is one of the block.
        unsafe {
            let list = self.buffers.add(self.used.buffers);
            ptr::copy_nonoverlapping(buffers.as_ptr(), list, buffers.len());
            let mut filled = ArrowArray {
                length: values.length,
                null_count: values.null_count,
                offset: values.offset,
                n_buffers: buffers.len() as i64,
                buffers: if buffers.is_empty() {
                    ptr::null_mut()
                } else {
                    list
                },
                ..ArrowArray::zeroed()
            };
            Block::join(self.block, &mut filled);
            array.write(filled);
        }
        self.used.buffers += buffers.len();
        self.set += 1;
        self
    }

    /// Adds children to an array that has been set. They are siblings of the first, which is
    /// returned, and each has to be set.
    pub fn add_children(&mut self, parent: Node, count: usize) -> Node {
        let Some(array) = self.room(parent, count) else {
            return Node(usize::MAX);
        };
        // SAFETY: the parent was set, and there is room for so many structs.
        unsafe {
            if !(*array).children.is_null() {
                self.refuse("children added twice: expected one call");
                return Node(usize::MAX);
            }
            let first = self.add(count);
            if count > 0 {
                (*array).children = self.pointers.add(first.0);
                (*array).n_children = count as i64;
            }
            first
        }
    }

    /// Adds a dictionary to an array that has been set, to be set too.
    pub fn add_dictionary(&mut self, array: Node) -> Node {
        let Some(array) = self.room(array, 1) else {
            return Node(usize::MAX);
        };
        // SAFETY: the array was set, and there is room for a struct.
        unsafe {
            if !(*array).dictionary.is_null() {
                self.refuse("dictionary added twice: expected one call");
                return Node(usize::MAX);
            }
            let node = self.add(1);
            (*array).dictionary = self.structs.add(node.0);
            node
        }
    }

    /// The array. Errors: EINVAL for the first request that could not be met, or when an array was
    /// not set.
    pub fn finish(mut self) -> Result<Array, Error> {
        if self.fault.is_none() && self.set != self.used.arrays + 1 {
            self.refuse("array added and not set: expected every array to be set");
        }
        if let Some(fault) = &self.fault {
            return Err(Error::invalid(format!("array builder: {fault}")));
        }
        // SAFETY: every struct is complete. The root moves out, and the structs own the block.
        unsafe {
            Block::set_shares(self.block, self.set);
            let root = ptr::read(self.structs);
            std::mem::forget(self);
            Ok(Owner::from_raw(root))
        }
    }

    /// The array as a device array without an event. Errors: as [`finish`](Self::finish).
    pub fn finish_on(
        self,
        device_type: ArrowDeviceType,
        device_id: i64,
    ) -> Result<DeviceArray, Error> {
        // SAFETY: there is no event.
        unsafe { self.finish_with_event(device_type, device_id, ptr::null_mut()) }
    }

    /// The array as a device array with an event.
    ///
    /// Errors: as [`finish`](Self::finish); EINVAL also for an event on a device type that has none.
    ///
    /// # Safety
    ///
    /// `sync_event` is NULL or of the type that the device type has (docs/synchronization.md): the
    /// address of the handle as a rule, valid until the object is dropped.
    pub unsafe fn finish_with_event(
        self,
        device_type: ArrowDeviceType,
        device_id: i64,
        sync_event: *mut c_void,
    ) -> Result<DeviceArray, Error> {
        let has_none = |info: &fletching_abi::DeviceInfo| info.event_pointer == EventPointer::None;
        if !sync_event.is_null() && device_type.info().is_some_and(has_none) {
            return Err(Error::invalid(
                "array builder: sync_event not NULL: expected NULL, because the device type has no \
                 event",
            ));
        }
        let array = self.finish()?.into_raw();
        // SAFETY: the array is ours, and the caller vouches for the event.
        Ok(unsafe {
            Owner::from_raw(ArrowDeviceArray {
                array,
                device_id,
                device_type,
                sync_event,
                ..ArrowDeviceArray::zeroed()
            })
        })
    }

    fn added(&self, node: Node) -> Option<*mut ArrowArray> {
        // SAFETY: there are so many structs.
        (node.0 <= self.used.arrays).then(|| unsafe { self.structs.add(node.0) })
    }

    /// The parent, when it was set and there is room for so many below it.
    fn room(&mut self, parent: Node, count: usize) -> Option<*mut ArrowArray> {
        let free = self.capacity.arrays - self.used.arrays;
        // SAFETY: the struct was added, so its release is there to be read.
        let array = self
            .added(parent)
            .filter(|array| unsafe { (**array).release.is_some() });
        if array.is_none() {
            self.refuse(
                "children or dictionary added too early: expected the array to be set before",
            );
        } else if count > free {
            let needed = self.used.arrays.saturating_add(count);
            self.refuse(&format!(
                "capacity.arrays is too small: expected at least {needed}, got {}",
                self.capacity.arrays
            ));
        }
        array.filter(|_| self.fault.is_none())
    }

    /// # Safety
    ///
    /// There is room for so many structs.
    unsafe fn add(&mut self, count: usize) -> Node {
        let first = self.used.arrays + 1;
        for index in first..first + count {
            // SAFETY: the caller vouches for the room.
            unsafe {
                let array = self.structs.add(index);
                (*array).release = None;
                self.pointers.add(index).write(array);
            }
        }
        self.used.arrays += count;
        Node(first)
    }

    #[cold]
    fn refuse(&mut self, why: &str) -> &mut Self {
        self.fault.get_or_insert_with(|| why.into());
        self
    }

    #[cold]
    fn refuse_buffers(&mut self, count: usize) -> &mut Self {
        let needed = self.used.buffers.saturating_add(count);
        self.refuse(&format!(
            "capacity.buffers is too small: expected at least {needed}, got {}",
            self.capacity.buffers
        ))
    }
}

impl<T: Send + 'static> Drop for ArrayBuilder<T> {
    fn drop(&mut self) {
        // SAFETY: finish has not handed the block over, so nothing points to it.
        unsafe { Block::free(self.block) }
    }
}
