// SPDX-License-Identifier: Apache-2.0

//! What happens after a foreign release: an object is dropped, an event is let go.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use fletching_abi::ArrowArray;

use crate::chain::{self, Chain, Link, Shown};
use crate::error::Error;
use crate::owner::Owner;
use crate::raw::{Base, Nested, Release};
use crate::tree::children_of;

/// The `private_data` of a hooked struct: its former members, and what is dropped afterwards, in
/// this order. A struct has one hook, so that its release needs no recursion.
pub(crate) struct Hook<B> {
    release: Option<Release<B>>,
    private_data: *mut c_void,
    /// An object, or a share of an event.
    first: Link,
    others: Vec<Link>,
}

/// The hook of a struct that has one.
///
/// # Safety
///
/// `target` is as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
unsafe fn hook_of<B: Base>(target: &mut B) -> Option<&mut Hook<B>> {
    let (Some(release), hook) = target.private_data() else {
        return None;
    };
    // SAFETY: only `set` makes such a struct, and the hook lives until its release.
    ptr::fn_addr_eq(release, B::hooked()).then(|| unsafe { &mut *hook.cast() })
}

/// # Safety
///
/// As for [`hook_of`].
unsafe fn set<B: Base>(target: &mut B, attached: Link) {
    // SAFETY: the caller vouches for the struct.
    if let Some(hook) = unsafe { hook_of(target) } {
        return hook.others.push(attached);
    }
    let (release, private_data) = target.hook();
    let hook = Box::new(Hook {
        release: *release,
        private_data: *private_data,
        first: attached,
        others: Vec::new(),
    });
    *release = Some(B::hooked());
    *private_data = Box::into_raw(hook).cast();
}

/// The release callback of a hooked struct.
pub(crate) unsafe extern "C" fn run<B: Base>(this: *mut B) {
    // SAFETY: `set` put a hook there, which lives until the struct is released.
    unsafe {
        let (Some(_), private_data) = (*this).private_data() else {
            return;
        };
        let (outer, mut own) = (chain::of(private_data.cast()), Chain::new());
        let chain = match outer.is_null() {
            true => &raw mut own,
            false => outer,
        };
        let hook = *Box::from_raw(private_data.cast::<Hook<B>>());
        let (release, private_data) = (*this).hook();
        *release = hook.release;
        *private_data = hook.private_data;
        let mut moved = (*this).move_out();
        (*chain).extend(hook.others.into_iter().rev());
        (*chain).push(hook.first);
        chain::within(moved.our_data(), chain, || moved.release_last());
        chain::drop_all(own);
    }
}

impl<R: Nested> Owner<R> {
    /// Drops `object` right after the release of the struct, on the thread that releases it. For
    /// what the producer does not know of and the data needs: a stream, a mapping, a lock.
    ///
    /// A child that is moved out does not prolong its life; see [`share`](Self::share) for that.
    ///
    /// Errors: EINVAL when the struct is released; then `object` is dropped.
    pub fn attach(&mut self, object: impl Send + 'static) -> Result<(), Error> {
        if self.is_released() {
            return Err(Error::invalid(
                "attach: target is released: expected a live struct",
            ));
        }
        // SAFETY: see from_raw.
        unsafe {
            set(
                (*self.as_mut_ptr()).base_mut(),
                Link::Object(Box::new(object)),
            )
        };
        Ok(())
    }
}

/// The structs of an array that an event is for.
///
/// Errors: EINVAL for an array that is malformed, see [`walk`](crate::tree::walk).
///
/// # Safety
///
/// `array` is as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
#[cfg(feature = "runtime")]
pub(crate) unsafe fn event_targets(
    operation: &str,
    array: *mut ArrowArray,
) -> Result<Vec<*mut ArrowArray>, Error> {
    let mut targets = Vec::new();
    // SAFETY: the caller vouches for the array, and the walk for the structs in it.
    unsafe {
        crate::tree::walk(operation, array, &mut |node: *mut ArrowArray| {
            if !(*node).is_released() {
                targets.push(node);
            }
            Ok(())
        })?;
    }
    Ok(targets)
}

/// Gives each target a share of the object that holds their event, because a consumer may move any
/// of them out.
///
/// # Safety
///
/// [`event_targets`] returned `targets`, and the array has not changed since.
#[cfg(feature = "runtime")]
pub(crate) unsafe fn attach_event(targets: Vec<*mut ArrowArray>, share: &Shown) {
    for target in targets {
        // SAFETY: the caller vouches for them.
        unsafe { keep_event(&mut *target, share.clone()) };
    }
}

/// The share of the event that `parent` keeps alive. A foreign array is held back from now on: its
/// release runs when the last share is gone, the array's own among them.
///
/// # Safety
///
/// `parent` is as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
pub(crate) unsafe fn event_share(parent: &mut ArrowArray) -> Shown {
    // SAFETY: the caller vouches for the array.
    if let Some(hook) = unsafe { hook_of(parent) } {
        for attached in std::iter::once(&hook.first).chain(&hook.others) {
            if let Link::Shown(share) = attached {
                return share.clone();
            }
        }
    }
    // SAFETY: the copy takes the place of the original, whose callbacks are replaced.
    let held_back = HeldBack(unsafe { ptr::read(parent) });
    let share = Shown {
        data: held_back.0.our_data(),
        share: Arc::new(held_back),
    };
    *parent.hook().0 = Some(release_children);
    // SAFETY: the callback and the fields that it reads are valid.
    unsafe { keep_event(parent, share.clone()) };
    share
}

/// Lets a struct that was moved out of an array keep the event of the array alive.
///
/// # Safety
///
/// `target` is as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
pub(crate) unsafe fn keep_event(target: &mut ArrowArray, share: Shown) {
    // SAFETY: the caller vouches for the array.
    unsafe { set(target, Link::Shown(share)) }
}

struct HeldBack(ArrowArray);

// SAFETY: a release may be called from any thread, and nothing else is done with the struct.
unsafe impl Send for HeldBack {}
// SAFETY: as above.
unsafe impl Sync for HeldBack {}

impl Drop for HeldBack {
    fn drop(&mut self) {
        // SAFETY: the array was moved in, and the last struct that shows it is released.
        unsafe { ArrowArray::release_once(&mut self.0) }
    }
}

/// The release callback of an array that is held back: the data of the children that are still
/// there need not wait.
unsafe extern "C" fn release_children(this: *mut ArrowArray) {
    // SAFETY: the array is released once. What is in a parent is moved out before its release.
    unsafe {
        (*this).release = None;
        for child in children_of(&*this) {
            ArrowArray::release_once(*child);
        }
        ArrowArray::release_once((*this).dictionary);
    }
}
