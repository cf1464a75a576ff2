// SPDX-License-Identifier: Apache-2.0

//! One allocation for everything below a struct that we export: the object that owns the data, the
//! structs of its children, and the lists of pointers.

use std::alloc::{alloc, dealloc, Layout};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::discard;
use crate::raw::{Base, Release};

/// What all blocks begin with. Each struct whose `private_data` points to a block holds a share.
#[repr(C)]
struct Head {
    shares: AtomicUsize,
    destroy: unsafe fn(*mut Head),
}

/// The block: then follow `structs` of type `B`, a pointer for each, and `extras` addresses.
#[repr(C)]
pub(crate) struct Block<B, T> {
    head: Head,
    structs: usize,
    extras: usize,
    object: T,
    of: PhantomData<B>,
}

impl<B: Base, T: Send + 'static> Block<B, T> {
    /// The layout, and where the structs, the pointers and the addresses begin. None for a size
    /// that no memory has.
    fn layout(structs: usize, extras: usize) -> Option<(Layout, [usize; 3])> {
        let (layout, first) = Layout::new::<Self>()
            .extend(Layout::array::<B>(structs).ok()?)
            .ok()?;
        let (layout, pointers) = layout.extend(Layout::array::<*mut B>(structs).ok()?).ok()?;
        let (layout, addresses) = layout
            .extend(Layout::array::<*const c_void>(extras).ok()?)
            .ok()?;
        Some((layout, [first, pointers, addresses]))
    }

    /// A block without shares. None when there is no memory; then `object` is dropped.
    pub(crate) fn new(structs: usize, extras: usize, object: T) -> Option<*mut Self> {
        let (layout, _) = Self::layout(structs, extras)?;
        // SAFETY: the layout is that of the block and more. What is written there is its own.
        unsafe {
            let block = alloc(layout).cast::<Self>();
            if block.is_null() {
                return None;
            }
            block.write(Self {
                head: Head {
                    shares: AtomicUsize::new(0),
                    destroy: Self::destroy,
                },
                structs,
                extras,
                object,
                of: PhantomData,
            });
            Some(block)
        }
    }

    /// The structs, their pointers and the addresses, all uninitialized.
    ///
    /// # Safety
    ///
    /// `this` points to a block.
    pub(crate) unsafe fn parts(this: *mut Self) -> (*mut B, *mut *mut B, *mut *const c_void) {
        // SAFETY: the caller vouches for the block, whose layout could be made before.
        unsafe {
            let (_, offsets) = Self::layout((*this).structs, (*this).extras).unwrap_unchecked();
            let at = |offset| this.cast::<u8>().add(offset);
            (
                at(offsets[0]).cast(),
                at(offsets[1]).cast(),
                at(offsets[2]).cast(),
            )
        }
    }

    /// Where the object is, as long as the block lives.
    ///
    /// # Safety
    ///
    /// `this` points to a block.
    pub(crate) unsafe fn object(this: *mut Self) -> *mut T {
        // SAFETY: the caller vouches for the block.
        unsafe { &raw mut (*this).object }
    }

    /// Sets how many structs hold a share, before any of them is handed on.
    ///
    /// # Safety
    ///
    /// `this` points to a block.
    pub(crate) unsafe fn set_shares(this: *mut Self, shares: usize) {
        // SAFETY: the caller vouches for the block.
        unsafe { (*this).head.shares.store(shares, Ordering::Relaxed) }
    }

    /// Drops the object and frees the block.
    ///
    /// # Safety
    ///
    /// `this` points to a block, to which nothing points any more.
    pub(crate) unsafe fn free(this: *mut Self) {
        // SAFETY: the caller vouches for the block; a head is the first field of its block.
        unsafe { Self::destroy(this.cast()) }
    }

    unsafe fn destroy(head: *mut Head) {
        let this = head.cast::<Self>();
        // SAFETY: the last share is gone, so nobody else uses the block, which `new` has allocated
        // with this layout.
        unsafe {
            let (layout, _) = Self::layout((*this).structs, (*this).extras).unwrap_unchecked();
            discard(ptr::read(&raw const (*this).object));
            dealloc(this.cast(), layout);
        }
    }

    /// Makes a struct point to the block, of which it holds a share from now on.
    pub(crate) fn join(this: *mut Self, node: &mut B) {
        let (release, private_data) = node.hook();
        *release = Some(release_in_block::<B>);
        *private_data = this.cast();
    }
}

/// Returns `count` shares. The thread that returns the last one destroys the block.
unsafe fn give_back(block: *mut Head, count: usize) {
    // SAFETY: the caller holds `count` shares, so the block is alive.
    unsafe {
        let shares = &(*block).shares;
        // When all are ours no other thread can hold one, so no synchronization is needed.
        if shares.load(Ordering::Acquire) == count
            || shares.fetch_sub(count, Ordering::AcqRel) == count
        {
            ((*block).destroy)(block);
        }
    }
}

/// The release callback of every struct that points to a block.
unsafe extern "C" fn release_in_block<B: Base>(node: *mut B) {
    // SAFETY: the struct was filled by us and is released by the only party that uses it. When it
    // is released already, the block may be gone.
    unsafe {
        let (Some(_), private_data) = (*node).private_data() else {
            return;
        };
        let block = private_data.cast::<Head>();
        *(*node).hook().0 = None;
        let shares = 1 + release_below(&*node, block);
        give_back(block, shares);
    }
}

/// Releases what is below a struct of ours. Returns the shares of `block` that this has set free: a
/// child that is as we made it needs no call to be released.
unsafe fn release_below<B: Base>(node: &B, block: *mut Head) -> usize {
    let (list, count) = node.children();
    let dictionary = node.dictionary();
    let mut shares = 0;
    // SAFETY: we have made the list. What is not as we made it has a callback of its own, or none.
    unsafe {
        for index in 0..count.max(0) as usize {
            shares += release_one(*list.add(index), block);
        }
        if !dictionary.is_null() {
            shares += release_one(dictionary, block);
        }
    }
    shares
}

#[inline]
unsafe fn release_one<B: Base>(below: *mut B, block: *mut Head) -> usize {
    // SAFETY: as in release_below.
    unsafe {
        let (release, private_data) = (*below).private_data();
        let Some(callback) = release else { return 0 };
        if private_data != block.cast() || !is_ours(callback) {
            callback(below);
            return 0;
        }
        *(*below).hook().0 = None;
        let (_, count) = (*below).children();
        if count == 0 && (*below).dictionary().is_null() {
            return 1;
        }
        1 + release_below(&*below, block)
    }
}

fn is_ours<B: Base>(callback: Release<B>) -> bool {
    ptr::fn_addr_eq(callback, release_in_block::<B> as Release<B>)
}
