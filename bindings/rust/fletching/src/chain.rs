// SPDX-License-Identifier: Apache-2.0

//! Releases nested owners without recursion, in the order of a recursive release.

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use fletching_abi::{ArrowArray, ArrowDeviceArray, ArrowSchema};

use crate::error::discard;
use crate::owner::Owner;
use crate::raw::{Base, Nested};
use crate::shared::Shared;

/// A reference to a struct or an event, which keeps it alive.
pub(crate) type Share = Arc<dyn Send + Sync>;

/// The object in the block of a view. The type is private, so no other block has an object of this
/// type.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) share: Share,
    /// The address of the shared struct's `private_data`, or 0 if its callback is foreign. A
    /// foreign callback may pass the struct on to a callback of this crate and expects the release
    /// to be complete on return.
    pub(crate) data: usize,
}

/// Objects to drop, in reverse order.
pub(crate) type Chain = Vec<Link>;

pub(crate) enum Link {
    Shown(Shown),
    Object(Box<dyn Any + Send>),
    /// Drops the references of a struct, after the objects of its descendants: the function, the
    /// `private_data` and the number of references.
    Shares(unsafe fn(*mut c_void, usize), *mut c_void, usize),
}

thread_local! {
    /// The `private_data` of the struct that is being dropped, and its chain. Only the callback of
    /// this struct adds to the chain: a release inside a foreign callback or a user's drop is
    /// complete when it returns.
    static NEXT: Cell<(usize, *mut Chain)> = const { Cell::new((0, ptr::null_mut())) };
}

/// Returns the chain for the release of the struct with this `private_data`, or NULL.
pub(crate) fn peek(data: *const ()) -> *mut Chain {
    let (next, chain) = NEXT.get();
    match next == data.addr() {
        true => chain,
        false => ptr::null_mut(),
    }
}

/// [`peek`] for a callback that frees its `private_data`: later calls return NULL.
pub(crate) fn of(data: *const ()) -> *mut Chain {
    let chain = peek(data);
    if !chain.is_null() {
        NEXT.set((0, ptr::null_mut()));
    }
    chain
}

/// Runs `release`, which calls the callback of the struct with this `private_data`, as a part of
/// `chain`. If `data` is 0, the release is complete when it returns.
pub(crate) fn within(data: usize, chain: *mut Chain, release: impl FnOnce()) {
    let outer = NEXT.replace((data, chain));
    release();
    NEXT.set(outer);
}

/// Drops the object of a block. An object that owns structs of this crate is added to the chain of
/// the current release, if there is one.
#[inline]
pub(crate) fn drop_object<T: Send + 'static>(object: T, block: *const ()) {
    match owns_structs::<T>() {
        true => drop_owner(object, block),
        false => discard(object),
    }
}

#[inline]
fn owns_structs<T: 'static>() -> bool {
    let is = |owners: [TypeId; 2]| owners.contains(&TypeId::of::<T>());
    is([TypeId::of::<Shown>(); 2])
        || is(owners_of::<ArrowArray>())
        || is(owners_of::<ArrowDeviceArray>())
        || is(owners_of::<ArrowSchema>())
}

#[inline]
fn owners_of<R: Nested>() -> [TypeId; 2] {
    [TypeId::of::<Owner<R>>(), TypeId::of::<Shared<R>>()]
}

fn drop_owner<T: Send + 'static>(object: T, block: *const ()) {
    let mut object = Some(object);
    let shown = (&mut object as &mut dyn Any).downcast_mut::<Option<Shown>>();
    let link = match shown.and_then(Option::take) {
        Some(shown) => Some(Link::Shown(shown)),
        None => object.map(|object| Link::Object(Box::new(object))),
    };
    // SAFETY: a chain in `NEXT` is not borrowed, and outlives the release.
    match unsafe { of(block).as_mut() } {
        Some(chain) => chain.extend(link),
        None => drop_all(link.into_iter().collect()),
    }
}

/// The `data` of [`Shown`] for an object that is an owner or a `Shared`, otherwise 0.
fn data_of(object: &dyn Any) -> usize {
    fn of<R: Nested>(object: &dyn Any) -> Option<usize> {
        let shared = || object.downcast_ref::<Shared<R>>().map(|shared| &**shared);
        let owner = object.downcast_ref::<Owner<R>>().or_else(shared);
        owner.map(|owner| owner.as_raw().base().our_data())
    }
    let found = of::<ArrowArray>(object).or_else(|| of::<ArrowDeviceArray>(object));
    found.or_else(|| of::<ArrowSchema>(object)).unwrap_or(0)
}

/// Drops the links of a chain, including links that are added meanwhile.
pub(crate) fn drop_all(mut chain: Chain) {
    while let Some(link) = chain.pop() {
        match link {
            Link::Object(object) => {
                within(data_of(&*object), &raw mut chain, || discard(object));
            }
            Link::Shown(Shown { share, data }) => {
                within(data, &raw mut chain, || discard(share));
            }
            Link::Shares(give_back, block, count) => {
                // SAFETY: the chain holds the references.
                let call = || unsafe { give_back(block, count) };
                within(block.addr(), &raw mut chain, call);
            }
        }
    }
}
