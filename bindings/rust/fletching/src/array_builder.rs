// SPDX-License-Identifier: Apache-2.0

//! Builds an array and all its children from buffers and the object that owns them, in one
//! allocation.

use std::ffi::c_void;
use std::ptr;

use fletching_abi::ArrowArray;

use crate::block::Block;
use crate::error::Error;
use crate::owner::{Array, Owner};
use crate::tree::{walk, MAX_DEPTH, MAX_STRUCTS};

/// The capacity of a builder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayCapacity {
    /// Children and dictionaries at every depth, without the array itself.
    pub arrays: usize,
    /// Buffers of all arrays, including the array itself.
    pub buffers: usize,
}

/// The length, null count and offset of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayValues {
    /// The number of values.
    pub length: i64,
    /// The number of nulls, or -1 if it is unknown.
    pub null_count: i64,
    /// The index of the first value in each buffer.
    pub offset: i64,
}

impl ArrayValues {
    /// `length` values without nulls, starting at offset 0.
    #[must_use]
    pub const fn of(length: i64) -> Self {
        Self {
            length,
            null_count: 0,
            offset: 0,
        }
    }

    #[inline]
    fn is_plausible(&self) -> bool {
        (self.length | self.offset) >= 0 && (-1..=self.length).contains(&self.null_count)
    }
}

/// One array in a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(usize);

impl Node {
    /// The root array.
    pub const ROOT: Self = Self(0);
    /// Returned by a failed call.
    const NONE: Self = Self(usize::MAX);

    /// The node that was added `index` places after this one.
    #[must_use]
    pub const fn sibling(self, index: usize) -> Self {
        Self(self.0.saturating_add(index))
    }
}

/// Builds an array in place, together with the object that owns its data.
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
/// One allocation holds the object, the structs of the children, and the lists of buffers and
/// children. It is freed when the last struct is released: the array, or a child that was moved out
/// of it. The object is then dropped, on the thread of that last release. The buffers must belong
/// to the object or outlive it.
///
/// A call that fails, and every call after it, changes nothing; `finish` returns the error, EINVAL
/// with the reason. Individual calls therefore need no checks.
///
/// See "Release callback semantics for producers" in the Arrow C data interface.
pub struct ArrayBuilder<T: Send + 'static> {
    block: *mut Block<ArrowArray, T>,
    next_buffer: *mut *const c_void,
    buffers_left: usize,
    arrays_left: usize,
    added: usize,
    set: usize,
    /// The arrays that were set by moving one in.
    moved: usize,
    /// The number of calls that added children or a dictionary: an upper bound for the levels below
    /// the root.
    levels: usize,
    fault: Option<Fault>,
}

impl<T: Send> std::fmt::Debug for ArrayBuilder<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayBuilder")
            .field("added", &self.added)
            .field("set", &self.set)
            .finish_non_exhaustive()
    }
}

/// The first call that failed and, if the capacity was too small, the capacity needed and the
/// capacity available.
#[derive(Clone, Copy)]
struct Fault {
    why: &'static str,
    capacity: Option<(usize, usize)>,
}

impl Fault {
    /// Takes values and not references, so that the builder can stay in registers.
    #[cold]
    fn of_set(plausible: bool, added: bool, fits: bool, capacity: (usize, usize)) -> Self {
        let why = match (plausible, added, fits) {
            (false, ..) => {
                "length, offset or null_count out of range: expected 0 or more, null_count -1 to \
                 length"
            }
            (_, false, _) => "no such child or dictionary: expected one that was added",
            (.., true) => "array set twice: expected one call for each added array",
            (.., false) => "capacity.buffers is too small",
        };
        let is_capacity = plausible && added && !fits;
        Self {
            why,
            capacity: is_capacity.then_some(capacity),
        }
    }

    /// The fault of adding children or a dictionary.
    #[cold]
    fn of_room(is_set: bool, is_own: bool, capacity: (usize, usize)) -> Self {
        let why = match (is_set, is_own) {
            (false, _) => {
                "children or dictionary added too early: expected the array to be set before"
            }
            (_, false) => {
                "children or dictionary added to a moved array: expected one that was set"
            }
            (_, true) => "capacity.arrays is too small",
        };
        Self {
            why,
            capacity: is_own.then_some(capacity),
        }
    }
}

// SAFETY: the builder owns the block and its contents.
unsafe impl<T: Send> Send for ArrayBuilder<T> {}

impl<T: Send + 'static> ArrayBuilder<T> {
    /// Moves `object` into the builder. Errors: ENOMEM for 2^22 or more arrays, and if the
    /// allocation fails.
    #[inline]
    pub fn new(capacity: ArrayCapacity, object: T) -> Result<Self, Error> {
        if capacity.arrays >= MAX_STRUCTS as usize {
            return Err(no_memory());
        }
        let block = Block::<ArrowArray, T>::new(capacity.arrays + 1, capacity.buffers, object);
        let block = block.ok_or_else(no_memory)?;
        // SAFETY: the block is new and has room for the root.
        unsafe {
            let (structs, _, next_buffer) = Block::parts(block);
            (*structs).release = None;
            Ok(Self {
                block,
                next_buffer,
                buffers_left: capacity.buffers,
                arrays_left: capacity.arrays,
                added: 1,
                set: 0,
                moved: 0,
                levels: 0,
                fault: None,
            })
        }
    }

    /// The object, at its final address: an event in it has the stable address that the interface
    /// requires.
    #[must_use]
    #[inline]
    pub fn object(&self) -> &T {
        // SAFETY: the block lives as long as the builder, which returns no other reference.
        unsafe { &*Block::object(self.block) }
    }

    /// The object, mutably.
    #[must_use]
    #[inline]
    pub fn object_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *Block::object(self.block) }
    }

    /// Sets the length, null count, offset and buffers of an array. Call it once for each array.
    /// The list of buffers is copied; its entries are addresses, normally on the device, or NULL.
    /// Give an array without rows one zero offset if its type has offsets: some consumers reject
    /// NULL.
    #[inline]
    pub fn set(&mut self, node: Node, values: ArrayValues, buffers: &[*const c_void]) -> &mut Self {
        let fits = buffers.len() <= self.buffers_left;
        if !values.is_plausible() || !self.is_unset(node) || !fits {
            // SAFETY: both pointers are into the block's list.
            let used = unsafe { self.next_buffer.offset_from(Block::parts(self.block).2) } as usize;
            let capacity = (used + buffers.len(), used + self.buffers_left);
            let fault = Fault::of_set(values.is_plausible(), node.0 < self.added, fits, capacity);
            self.fault.get_or_insert(fault);
            return self;
        }
        // SAFETY: there is room for the buffers, and the struct is part of the block.
        unsafe {
            let list = self.next_buffer;
            ptr::copy_nonoverlapping(buffers.as_ptr(), list, buffers.len());
            self.next_buffer = list.add(buffers.len());
            self.buffers_left -= buffers.len();
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
            self.at(node).write(filled);
        }
        self.set += 1;
        self
    }

    /// Moves an array into a child or dictionary, instead of [`set`](Self::set). It is released
    /// with the built array, or with the builder.
    ///
    /// ```
    /// use fletching::{Array, ArrayBuilder, ArrayCapacity, ArrayValues, Node};
    ///
    /// let keys = vec![0i8, 1, 0];
    /// let mut builder = ArrayBuilder::new(ArrayCapacity { arrays: 1, buffers: 2 }, keys)?;
    /// let first = builder.object().as_ptr().cast();
    /// builder.set(Node::ROOT, ArrayValues::of(3), &[std::ptr::null(), first]);
    /// let words = builder.add_dictionary(Node::ROOT);
    /// builder.set_array(words, Array::from_strings(["a", "b"].map(Some))?);
    /// assert_eq!(builder.finish()?.dictionary().unwrap().length(), 2);
    /// # Ok::<(), fletching::Error>(())
    /// ```
    pub fn set_array(&mut self, node: Node, array: Array) -> &mut Self {
        if node == Node::ROOT {
            self.refuse("root set to an array: expected a child or a dictionary");
        } else if array.is_released() {
            self.refuse("child or dictionary set to a released array: expected a live one");
        } else if !self.is_unset(node) {
            let fault = Fault::of_set(true, node.0 < self.added, true, (0, 0));
            self.fault.get_or_insert(fault);
        } else {
            let array = array.detach();
            if array.n_children != 0 || !array.dictionary.is_null() {
                self.levels = MAX_DEPTH; // finish counts the levels
            }
            // SAFETY: the struct is part of the block and not set.
            unsafe { self.at(node).write(array) };
            self.set += 1;
            self.moved += 1;
        }
        self
    }

    /// Adds children to an array that is set. Returns the first; the others are its siblings. Each
    /// of them must be set.
    #[inline]
    pub fn add_children(&mut self, parent: Node, count: usize) -> Node {
        let Some(parent) = self.room(parent, count) else {
            return Node::NONE;
        };
        // SAFETY: the parent is set, and there is room for the structs.
        unsafe {
            if !(*parent).children.is_null() {
                return self.refuse("children added twice: expected one call");
            }
            let first = self.add(count);
            if count > 0 {
                (*parent).children = Block::parts(self.block).1.add(first.0);
                (*parent).n_children = count as i64;
            }
            first
        }
    }

    /// Adds a dictionary to an array that is set. The dictionary must be set too.
    pub fn add_dictionary(&mut self, array: Node) -> Node {
        let Some(array) = self.room(array, 1) else {
            return Node::NONE;
        };
        // SAFETY: the array is set, and there is room for a struct.
        unsafe {
            if !(*array).dictionary.is_null() {
                return self.refuse("dictionary added twice: expected one call");
            }
            let node = self.add(1);
            (*array).dictionary = self.at(node);
            node
        }
    }

    /// Returns the array. Errors: EINVAL for the first call that failed, if an array was not set,
    /// and for more than 256 levels.
    #[inline]
    pub fn finish(self) -> Result<Array, Error> {
        let is_sound = self.fault.is_none() && self.set == self.added;
        if !is_sound || self.levels >= MAX_DEPTH {
            self.check()?;
        }
        // SAFETY: every struct is complete. The root is moved out, and the structs own the block.
        unsafe {
            Block::set_shares(self.block, self.set - self.moved);
            let root = ptr::read(self.at(Node::ROOT));
            std::mem::forget(self);
            Ok(Owner::new(root))
        }
    }

    /// # Safety
    ///
    /// The node was added.
    #[inline]
    unsafe fn at(&self, node: Node) -> *mut ArrowArray {
        // SAFETY: the block has this struct.
        unsafe { Block::parts(self.block).0.add(node.0) }
    }

    #[inline]
    fn is_unset(&self, node: Node) -> bool {
        // SAFETY: `release` is initialized in every struct that was added.
        node.0 < self.added && unsafe { (*self.at(node)).release.is_none() }
    }

    /// Whether an array was moved in. The node must be set.
    fn is_moved(&self, node: Node) -> bool {
        // SAFETY: the caller has checked the index.
        unsafe { (*self.at(node)).private_data != self.block.cast() }
    }

    /// Returns the parent if it is set and has room for `count` more arrays.
    fn room(&mut self, parent: Node, count: usize) -> Option<*mut ArrowArray> {
        let is_set = parent.0 < self.added && !self.is_unset(parent);
        let is_own = is_set && !self.is_moved(parent);
        if !is_own || count > self.arrays_left {
            let used = self.added - 1;
            let capacity = (used.saturating_add(count), used + self.arrays_left);
            self.fault
                .get_or_insert(Fault::of_room(is_set, is_own, capacity));
        }
        // SAFETY: the parent was added.
        self.fault.is_none().then(|| unsafe { self.at(parent) })
    }

    /// # Safety
    ///
    /// There is room for `count` structs.
    unsafe fn add(&mut self, count: usize) -> Node {
        let first = self.added;
        // SAFETY: the caller guarantees that the block has room.
        unsafe {
            let (structs, pointers, _) = Block::parts(self.block);
            for index in first..first + count {
                let array = structs.add(index);
                (*array).release = None;
                pointers.add(index).write(array);
            }
        }
        self.added += count;
        self.levels += 1;
        self.arrays_left -= count;
        Node(first)
    }

    fn refuse(&mut self, why: &'static str) -> Node {
        self.fault.get_or_insert(Fault {
            why,
            capacity: None,
        });
        Node::NONE
    }

    /// Releases the arrays that were moved in, if the builder is not finished.
    #[cold]
    fn release_moved(&mut self) {
        for node in (1..self.added).map(Node) {
            if !self.is_unset(node) && self.is_moved(node) {
                // SAFETY: the array was moved in.
                unsafe { ArrowArray::release_once(self.at(node)) };
            }
        }
    }

    #[cold]
    fn check(&self) -> Result<(), Error> {
        if self.fault.is_none() && self.set == self.added {
            // SAFETY: every struct is complete.
            return unsafe { walk("ArrayBuilder", self.at(Node::ROOT), &mut |_| Ok(())) };
        }
        const NOT_SET: &str = "array added and not set: expected every array to be set";
        let fault = self.fault.unwrap_or(Fault {
            why: NOT_SET,
            capacity: None,
        });
        let mut text = format!("ArrayBuilder: {}", fault.why);
        if let Some((needed, got)) = fault.capacity {
            text += &format!(": expected at least {needed}, got {got}");
        }
        Err(Error::invalid(text))
    }
}

#[cold]
fn no_memory() -> Error {
    Error::new(crate::errno::ENOMEM, "ArrayBuilder: no memory")
}

impl<T: Send + 'static> Drop for ArrayBuilder<T> {
    fn drop(&mut self) {
        if self.moved > 0 {
            self.release_moved();
        }
        // SAFETY: `finish` has not transferred the block, so nothing else points to it.
        unsafe { Block::free(self.block) }
    }
}
