// SPDX-License-Identifier: Apache-2.0

//! Releases views of views without recursion, in the order that recursion has.

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::ptr;

use crate::error::discard;
use crate::hook::{Attached, Share};

/// The object in the block of a view. The type is private, so that no other block has such an object.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) share: Share,
    /// The address of the shared struct's `private_data`, 0 below a foreign callback. That may pass the
    /// struct on to a callback of this crate, and expects a complete release.
    pub(crate) data: usize,
}

/// Objects that are due to be dropped, the next one last.
pub(crate) type Chain = Vec<Link>;

pub(crate) enum Link {
    Shown(Shown),
    Attached(Attached),
}

thread_local! {
    /// The `private_data` of the struct that is being dropped, and its chain. Only the callback of this
    /// struct adds to the chain: a release inside a foreign callback or a user's drop is complete when it
    /// returns.
    static NEXT: Cell<(usize, *mut Chain)> = const { Cell::new((0, ptr::null_mut())) };
}

/// The chain that the release of the struct with this `private_data` belongs to, or NULL. For its
/// callback, once.
pub(crate) fn of(data: *const ()) -> *mut Chain {
    let (next, chain) = NEXT.get();
    if next != data.addr() {
        return ptr::null_mut();
    }
    NEXT.set((0, ptr::null_mut()));
    chain
}

/// Runs `release`, which calls the callback of the struct with this `private_data`, as a part of `chain`.
/// With 0 the release is complete when it returns.
pub(crate) fn within(data: usize, chain: *mut Chain, release: impl FnOnce()) {
    let outer = NEXT.replace((data, chain));
    release();
    NEXT.set(outer);
}

/// Drops the object of a block. The object of a view is added to the chain of the release, if there is
/// one.
#[inline]
pub(crate) fn drop_object<T: 'static>(object: T, block: *const ()) {
    match TypeId::of::<T>() == TypeId::of::<Shown>() {
        true => drop_shown(&mut Some(object), block),
        false => discard(object),
    }
}

fn drop_shown(object: &mut dyn Any, block: *const ()) {
    let shown = object.downcast_mut::<Option<Shown>>();
    let link = shown.and_then(Option::take).map(Link::Shown);
    // SAFETY: a chain in `NEXT` is not borrowed, and outlives the release.
    match unsafe { of(block).as_mut() } {
        Some(chain) => chain.extend(link),
        None => drop_all(link.into_iter().collect()),
    }
}

/// Drops the links of a chain, and the links that are added meanwhile.
pub(crate) fn drop_all(mut chain: Chain) {
    while let Some(link) = chain.pop() {
        match link {
            Link::Attached(attached) => discard(attached),
            Link::Shown(Shown { share, data }) => within(data, &raw mut chain, || drop(share)),
        }
    }
}
