// SPDX-License-Identifier: Apache-2.0

//! One allocation for the descendants of an exported struct: the object that owns the data, the
//! structs of the children, and the lists of pointers.

use std::alloc::{alloc, dealloc, Layout};
use std::any::TypeId;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::chain::{self, Link};
use crate::raw::{Base, Release};

/// The header of every block. Each struct whose `private_data` points to a block holds a reference
/// to it.
#[repr(C)]
struct Head {
    shares: AtomicUsize,
    kind: &'static Kind,
}

/// Functions that depend on the type of a block's object.
struct Kind {
    destroy: unsafe fn(*mut Head),
    object: fn() -> TypeId,
}

/// A block. It is followed by `structs` structs of type `B`, one pointer for each, and `extras`
/// addresses.
#[repr(C)]
pub(crate) struct Block<B, T> {
    head: Head,
    structs: usize,
    extras: usize,
    object: T,
    /// Empty; aligns the end of the block for the structs that follow.
    of: [B; 0],
}

impl<B: Base, T: Send + 'static> Block<B, T> {
    /// The offset of the structs.
    const HEAD: usize = size_of::<Self>().next_multiple_of(align_of::<B>());

    const KIND: &'static Kind = &Kind {
        destroy: Self::destroy,
        object: TypeId::of::<T>,
    };

    /// Returns None if the size cannot be allocated.
    #[inline]
    fn layout(structs: usize, extras: usize) -> Option<Layout> {
        const MOST: usize = isize::MAX as usize / 4;
        let per_struct = size_of::<B>() + size_of::<*mut B>();
        if structs > MOST / per_struct || extras > MOST / size_of::<*const c_void>() {
            return None;
        }
        // SAFETY: the size does not overflow.
        Some(unsafe { Self::layout_of_block(structs, extras) })
    }

    /// # Safety
    ///
    /// [`layout`](Self::layout) has accepted the numbers.
    #[inline]
    unsafe fn layout_of_block(structs: usize, extras: usize) -> Layout {
        let per_struct = size_of::<B>() + size_of::<*mut B>();
        let size = Self::HEAD + structs * per_struct + extras * size_of::<*const c_void>();
        // SAFETY: the caller guarantees that the size does not overflow.
        unsafe { Layout::from_size_align_unchecked(size, align_of::<Self>()) }
    }

    /// Allocates a block with a reference count of zero. Returns None if the allocation fails;
    /// `object` is then dropped.
    #[inline]
    pub(crate) fn new(structs: usize, extras: usize, object: T) -> Option<*mut Self> {
        const { assert!(align_of::<B>() <= align_of::<Self>() && size_of::<T>() < 1 << 24) };
        let layout = Self::layout(structs, extras)?;
        // SAFETY: the layout includes the block, and only the block itself is written.
        unsafe {
            let block = alloc(layout).cast::<Self>();
            if block.is_null() {
                return None;
            }
            block.write(Self {
                head: Head {
                    shares: AtomicUsize::new(0),
                    kind: Self::KIND,
                },
                structs,
                extras,
                object,
                of: [],
            });
            Some(block)
        }
    }

    /// Returns the structs, their pointers and the addresses, all uninitialized.
    ///
    /// # Safety
    ///
    /// `this` points to a block.
    #[inline]
    pub(crate) unsafe fn parts(this: *mut Self) -> (*mut B, *mut *mut B, *mut *const c_void) {
        // SAFETY: the caller guarantees that `this` is a block; its allocation has room for all
        // three.
        unsafe {
            let structs = this.cast::<u8>().add(Self::HEAD).cast::<B>();
            let pointers = structs.add((*this).structs).cast::<*mut B>();
            let addresses = pointers.add((*this).structs).cast();
            (structs, pointers, addresses)
        }
    }

    /// Returns the address of the object, valid while the block is alive.
    ///
    /// # Safety
    ///
    /// `this` points to a block.
    #[inline]
    pub(crate) unsafe fn object(this: *mut Self) -> *mut T {
        // SAFETY: the caller guarantees that `this` is a block.
        unsafe { &raw mut (*this).object }
    }

    /// Sets the number of structs that hold a reference. Call it before any of them is visible to
    /// other code.
    ///
    /// # Safety
    ///
    /// `this` points to a block.
    #[inline]
    pub(crate) unsafe fn set_shares(this: *mut Self, shares: usize) {
        // SAFETY: the caller guarantees that `this` is a block.
        unsafe { (*this).head.shares.store(shares, Ordering::Relaxed) }
    }

    /// Drops the object and frees the block.
    ///
    /// # Safety
    ///
    /// `this` points to a block that is no longer referenced.
    pub(crate) unsafe fn free(this: *mut Self) {
        // SAFETY: the caller guarantees that `this` is a block; its first field is the head.
        unsafe { Self::destroy(this.cast()) }
    }

    unsafe fn destroy(head: *mut Head) {
        let this = head.cast::<Self>();
        // SAFETY: no references are left, so the block is not in use. `new` allocated it with this
        // layout.
        unsafe {
            let layout = Self::layout_of_block((*this).structs, (*this).extras);
            chain::drop_object(ptr::read(&raw const (*this).object), head.cast());
            dealloc(this.cast(), layout);
        }
    }

    /// Makes a struct point to the block and hold a reference to it.
    #[inline]
    pub(crate) fn join(this: *mut Self, node: &mut B) {
        let (release, private_data) = node.hook();
        *release = Some(B::in_block());
        *private_data = this.cast();
    }

    /// Returns the block that a struct has joined, if its object is a `T`. Any struct of this crate
    /// may have the callback, so the result identifies the caller's blocks only if `T` is private.
    ///
    /// # Safety
    ///
    /// `node` meets the requirements of [`Owner::from_raw`](crate::Owner::from_raw).
    pub(crate) unsafe fn of(node: &B) -> Option<*mut Self> {
        let (Some(release), block) = node.private_data() else {
            return None;
        };
        let is_block = ptr::fn_addr_eq(release, B::in_block());
        // SAFETY: only structs that joined a block have this callback, and their reference keeps
        // the block alive.
        let object = || unsafe { ((*block.cast::<Head>()).kind.object)() };
        (is_block && object() == TypeId::of::<T>()).then(|| block.cast())
    }
}

/// Drops `count` references. The thread that drops the last one destroys the block.
#[inline]
unsafe fn give_back(block: *mut c_void, count: usize) {
    // SAFETY: the caller holds `count` references, so the block is alive.
    unsafe {
        let block = block.cast::<Head>();
        let shares = &(*block).shares;
        // If the caller holds all references, no other thread holds one, and no synchronization is
        // needed.
        if shares.load(Ordering::Acquire) == count
            || shares.fetch_sub(count, Ordering::AcqRel) == count
        {
            ((*block).kind.destroy)(block);
        }
    }
}

/// The release callback of every struct that points to a block.
pub(crate) unsafe extern "C" fn release_in_block<B: Base>(node: *mut B) {
    // SAFETY: this crate filled the struct, and only one thread releases it. If it is already
    // released, the block may have been freed.
    unsafe {
        let (ours @ Some(_), block) = (*node).private_data() else {
            return;
        };
        *(*node).hook().0 = None;
        if (*node).is_leaf() {
            give_back(block, 1);
        } else {
            release_tree(&*node, block, ours);
        }
    }
}

/// Drops the block's object after the objects of the descendants, which may still be in a chain.
#[inline(never)] // so that a leaf saves no registers
unsafe fn release_tree<B: Base>(node: &B, block: *mut c_void, ours: Option<Release<B>>) {
    // SAFETY: as in release_in_block. A chain is not borrowed while a callback runs.
    unsafe {
        let chain = chain::peek(block.cast());
        let waiting = chain.as_ref().map_or(0, Vec::len);
        let count = 1 + release_below(node, block, ours);
        match chain.as_mut().filter(|chain| chain.len() > waiting) {
            Some(chain) => chain.insert(waiting, Link::Shares(give_back, block, count)),
            None => give_back(block, count),
        }
    }
}

/// Releases the descendants of a struct of this crate. Returns the number of references to `block`
/// to drop: an unmodified child is released without a call.
///
/// `ours` is the callback that is running; comparing with a register is cheaper than loading the
/// static again.
unsafe fn release_below<B: Base>(node: &B, block: *mut c_void, ours: Option<Release<B>>) -> usize {
    let (list, count) = node.children();
    let dictionary = node.dictionary();
    let count = count.max(0) as usize;
    let mut shares = count;
    // SAFETY: this crate made the list. A modified child has its own callback, or is released.
    unsafe {
        for index in 0..count {
            release_one(*list.add(index), block, ours, &mut shares);
        }
        if !dictionary.is_null() {
            shares += 1;
            release_one(dictionary, block, ours, &mut shares);
        }
    }
    shares
}

/// Expects that `shares` already includes the struct.
#[inline]
unsafe fn release_one<B: Base>(
    below: *mut B,
    block: *mut c_void,
    ours: Option<Release<B>>,
    shares: &mut usize,
) {
    // SAFETY: as in release_below.
    unsafe {
        let (release, private_data) = (*below).private_data();
        if address(release) != address(ours) || private_data != block {
            *shares -= 1;
            return release_foreign(below, block);
        }
        if !(*below).is_leaf() {
            *shares += release_below(&*below, block, ours);
        }
        *(*below).hook().0 = None;
    }
}

/// Does nothing if the struct was moved out.
#[cold]
unsafe fn release_foreign<B: Base>(below: *mut B, block: *mut c_void) {
    // SAFETY: as in release_below.
    unsafe {
        if let Some(callback) = (*below).private_data().0 {
            let chain = chain::peek(block.cast());
            chain::within((*below).our_data(), chain, || callback(below));
        }
    }
}

/// Returns NULL for None: comparing addresses takes one comparison, comparing options two.
#[inline]
fn address<B>(callback: Option<Release<B>>) -> *const () {
    // SAFETY: an optional function pointer has the layout of a pointer.
    unsafe { std::mem::transmute(callback) }
}
