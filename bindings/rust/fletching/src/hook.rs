// SPDX-License-Identifier: Apache-2.0

//! Actions after a foreign release callback: dropping an object, releasing an event.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use fletching_abi::ArrowArray;

use crate::chain::{self, Chain, Link, Shown};
use crate::error::Error;
use crate::owner::Owner;
use crate::raw::{Base, Nested, Release};
use crate::tree::children_of;

/// The `private_data` of a hooked struct: its original members, and the objects to drop after the
/// release, in this order. A struct has at most one hook, so its release needs no recursion.
pub(crate) struct Hook<B> {
    release: Option<Release<B>>,
    private_data: *mut c_void,
    first: Link,
    others: Vec<Link>,
}

/// Returns the struct's hook, if it has one.
///
/// # Safety
///
/// `target` meets the requirements of [`Owner::from_raw`](crate::Owner::from_raw).
unsafe fn hook_of<B: Base>(target: &mut B) -> Option<&mut Hook<B>> {
    let (Some(release), hook) = target.private_data() else {
        return None;
    };
    // SAFETY: only `set` installs this callback, and the hook lives until the struct is released.
    ptr::fn_addr_eq(release, B::hooked()).then(|| unsafe { &mut *hook.cast() })
}

/// # Safety
///
/// As for [`hook_of`].
unsafe fn set<B: Base>(target: &mut B, attached: Link) {
    // SAFETY: guaranteed by the contract of this function.
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
    // SAFETY: `set` stored the hook, which lives until the struct is released.
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
    /// Drops `object` right after the struct is released, on the releasing thread. Use it for an
    /// object that the data depends on but the producer does not know: a stream, a mapping, a lock.
    ///
    /// A child that is moved out does not keep `object` alive; use [`share`](Self::share) for that.
    ///
    /// Errors: EINVAL if the struct is released; `object` is then dropped.
    pub fn attach(&mut self, object: impl Send + 'static) -> Result<(), Error> {
        if self.is_released() {
            return Err(Error::invalid(
                "attach: target is released: expected a live struct",
            ));
        }
        // SAFETY: guaranteed by the contract of `from_raw`.
        unsafe {
            set(
                (*self.as_mut_ptr()).base_mut(),
                Link::Object(Box::new(object)),
            )
        };
        Ok(())
    }
}

/// Returns the structs of an array that must keep its event alive.
///
/// Errors: EINVAL if the array is malformed, see [`walk`](crate::tree::walk).
///
/// # Safety
///
/// `array` meets the requirements of [`Owner::from_raw`](crate::Owner::from_raw).
#[cfg(feature = "runtime")]
pub(crate) unsafe fn event_targets(
    operation: &str,
    array: *mut ArrowArray,
) -> Result<Vec<*mut ArrowArray>, Error> {
    let mut targets = Vec::new();
    // SAFETY: the caller guarantees that the array is valid; `walk` checks the structs in it.
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

/// Gives each target a reference to the object that owns the event: a consumer may move any of them
/// out.
///
/// # Safety
///
/// [`event_targets`] returned `targets`, and the array has not changed since.
#[cfg(feature = "runtime")]
pub(crate) unsafe fn attach_event(targets: Vec<*mut ArrowArray>, share: &Shown) {
    for target in targets {
        // SAFETY: the caller guarantees that the targets are still valid.
        unsafe { keep_event(&mut *target, share.clone()) };
    }
}

/// Returns a reference to the event of `parent`. Defers the release of a foreign array: its
/// callback runs when the last reference, including the array's, is dropped.
///
/// # Safety
///
/// `parent` meets the requirements of [`Owner::from_raw`](crate::Owner::from_raw).
pub(crate) unsafe fn event_share(parent: &mut ArrowArray) -> Shown {
    // SAFETY: guaranteed by the contract of this function.
    if let Some(hook) = unsafe { hook_of(parent) } {
        for attached in std::iter::once(&hook.first).chain(&hook.others) {
            if let Link::Shown(share) = attached {
                return share.clone();
            }
        }
    }
    // SAFETY: the copy replaces the original, whose callback is replaced below.
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

/// Makes a struct that was moved out of an array keep the array's event alive.
///
/// # Safety
///
/// `target` meets the requirements of [`Owner::from_raw`](crate::Owner::from_raw).
pub(crate) unsafe fn keep_event(target: &mut ArrowArray, share: Shown) {
    // SAFETY: guaranteed by the contract of this function.
    unsafe { set(target, Link::Shown(share)) }
}

struct HeldBack(ArrowArray);

// SAFETY: release may be called from any thread, and no other operation uses the struct.
unsafe impl Send for HeldBack {}
// SAFETY: as above.
unsafe impl Sync for HeldBack {}

impl Drop for HeldBack {
    fn drop(&mut self) {
        // SAFETY: the array was moved in, and no struct shares it any longer.
        unsafe { ArrowArray::release_once(&mut self.0) }
    }
}

/// The release callback of an array whose release is deferred. Releases the remaining children at
/// once: their data need not wait.
unsafe extern "C" fn release_children(this: *mut ArrowArray) {
    // SAFETY: the array is released once. `release_once` moves each child out before its callback
    // runs.
    // such.
    unsafe {
        (*this).release = None;
        for child in children_of(&*this) {
            ArrowArray::release_once(*child);
        }
        ArrowArray::release_once((*this).dictionary);
    }
}
