// SPDX-License-Identifier: Apache-2.0

//! Releases views of views without recursion, in the order that recursion has.

use std::any::Any;
use std::cell::Cell;
use std::ptr;

use crate::error::discard;
use crate::hook::{Attached, Share};

/// The object in the block of a view. The type is private, so that no other block has such an object.
pub(crate) struct Shown(pub(crate) Share);

/// Objects that are due to be dropped, the next one last.
pub(crate) type Chain = Vec<Link>;

pub(crate) enum Link {
    Shown(Share),
    Attached(Attached),
}

thread_local! {
    /// The struct that is being dropped, and its chain. Only the callback of this struct adds to the
    /// chain: a release inside a foreign callback or a user's drop is complete when it returns.
    static NEXT: Cell<(*const (), *mut Chain)> = const { Cell::new((ptr::null(), ptr::null_mut())) };
}

/// The chain that the release of the struct at `node` belongs to, or NULL. For its callback, once.
pub(crate) fn of<B>(node: *const B) -> *mut Chain {
    let (next, chain) = NEXT.get();
    if !ptr::eq(next, node.cast()) {
        return ptr::null_mut();
    }
    NEXT.set((ptr::null(), ptr::null_mut()));
    chain
}

/// Runs `release`, which calls the callback of the struct at `node`, as a part of `chain`.
pub(crate) fn within<B>(node: *const B, chain: *mut Chain, release: impl FnOnce()) {
    let outer = NEXT.replace((node.cast(), chain));
    release();
    NEXT.set(outer);
}

/// Drops the object of a block. The object of a view is added to `chain`, unless `chain` is NULL.
///
/// # Safety
///
/// `chain` is NULL or points to a chain that is not borrowed.
pub(crate) unsafe fn drop_object<T: 'static>(object: T, chain: *mut Chain) {
    let mut object = Some(object);
    let Some(shown) = (&mut object as &mut dyn Any).downcast_mut::<Option<Shown>>() else {
        return discard(object);
    };
    let link = shown.take().map(|shown| Link::Shown(shown.0));
    // SAFETY: the caller vouches for the chain.
    match unsafe { chain.as_mut() } {
        Some(chain) => chain.extend(link),
        None => drop_all(link.into_iter().collect()),
    }
}

/// Drops the links of a chain, and the links that are added meanwhile.
pub(crate) fn drop_all(mut chain: Chain) {
    while let Some(link) = chain.pop() {
        match link {
            Link::Attached(attached) => discard(attached),
            Link::Shown(share) => {
                let node: *const () = std::sync::Arc::as_ptr(&share).cast();
                within(node, &raw mut chain, || drop(share));
            }
        }
    }
}
