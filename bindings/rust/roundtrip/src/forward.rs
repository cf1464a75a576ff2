// SPDX-License-Identifier: Apache-2.0

//! The same data under release callbacks of Rust, which release what was moved in.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use fletching_abi::ArrowDeviceArray;

use crate::error::guard;
use crate::owned::Owned;
use crate::tree::{Links, Tree};

static EXPORTED: AtomicUsize = AtomicUsize::new(0);
static RELEASED: AtomicUsize = AtomicUsize::new(0);

/// How many structs were given a callback of Rust.
pub fn exported() -> usize {
    EXPORTED.load(Ordering::SeqCst)
}

/// How many of those callbacks ran.
pub fn released() -> usize {
    RELEASED.load(Ordering::SeqCst)
}

pub(crate) fn count_export() {
    EXPORTED.fetch_add(1, Ordering::SeqCst);
}

pub(crate) fn count_release() {
    RELEASED.fetch_add(1, Ordering::SeqCst);
}

/// What stands behind a struct of ours. The children and the dictionary are ours too, filled from
/// what was moved out of the source.
struct Behind<T: Tree> {
    children: *mut [*mut T],
    dictionary: *mut T,
    _source: Owned<T>,
}

impl<T: Tree> Drop for Behind<T> {
    /// Releases the children that nobody moved out, then the source.
    fn drop(&mut self) {
        // SAFETY: made by `forward_tree`, dropped once.
        unsafe {
            let children = Box::from_raw(self.children);
            for &child in children
                .iter()
                .chain([&self.dictionary])
                .filter(|node| !node.is_null())
            {
                drop(Owned::from_raw(*Box::from_raw(child)));
            }
        }
    }
}

/// Moves `source` in and gives a struct with the same data: each node with a callback of ours.
///
/// # Safety
///
/// `source` has been checked (`crate::check`).
pub unsafe fn forward_tree<T: Tree>(source: Owned<T>) -> Owned<T> {
    let links = source.links();
    // SAFETY: checked, so that every pointer to a node is good; each node is moved out once.
    let forward_node = |node: *mut T| unsafe {
        let forwarded = forward_tree(Owned::take(&mut *node));
        Box::into_raw(Box::new(forwarded.into_raw()))
    };
    let children: Box<[*mut T]> = (0..links.n_children as usize)
        // SAFETY: the list has that many entries.
        .map(|index| forward_node(unsafe { *links.children.add(index) }))
        .collect();
    let children = Box::into_raw(children);
    let dictionary = match links.dictionary.is_null() {
        true => std::ptr::null_mut(),
        false => forward_node(links.dictionary),
    };
    // SAFETY: plain data; the links, which own something, are replaced below.
    let mut copy = unsafe { std::ptr::read(&*source) };
    let behind = Box::new(Behind {
        children,
        dictionary,
        _source: source,
    });
    copy.set_links(Links {
        children: children.cast(),
        dictionary,
        release: Some(release::<T>),
        private_data: Box::into_raw(behind).cast(),
        ..links
    });
    count_export();
    // SAFETY: the callback is ours, and this is the only owner.
    unsafe { Owned::from_raw(copy) }
}

/// The same for a device array; its event goes with it and lives as long as the source. `reserved` is
/// zero, whatever the source has there.
///
/// # Safety
///
/// As for `forward_tree`.
pub unsafe fn forward_array(source: Owned<ArrowDeviceArray>) -> Owned<ArrowDeviceArray> {
    let source = source.into_raw();
    let mut copy = ArrowDeviceArray::zeroed();
    copy.device_id = source.device_id;
    copy.device_type = source.device_type;
    copy.sync_event = source.sync_event;
    // SAFETY: the caller's promise; the array has one owner after the other.
    unsafe {
        copy.array = forward_tree(Owned::from_raw(source.array)).into_raw();
        Owned::from_raw(copy)
    }
}

/// The callback of every node of ours.
unsafe extern "C" fn release<T: Tree>(this: *mut T) {
    let outcome = guard(|| {
        // SAFETY: a struct that `forward_tree` filled, and that is released once, here.
        unsafe {
            let links = (*this).move_out().links();
            drop(Box::from_raw(links.private_data.cast::<Behind<T>>()));
        }
        count_release();
        Ok(())
    });
    if let Err(error) = outcome {
        // A release callback has nobody to tell.
        let _ = writeln!(std::io::stderr(), "rust: release of {}: {error}", T::NAME);
    }
}
