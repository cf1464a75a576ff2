// SPDX-License-Identifier: Apache-2.0

//! What happens after a foreign release: an object is dropped, an event is let go.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use fletching_abi::ArrowArray;

use crate::error::discard;
use crate::raw::{Base, Release};
use crate::tree::children_of;

/// A share of what an event lives in.
pub(crate) type Share = Arc<dyn Send + Sync>;

enum Attached {
    Object { _object: Box<dyn Send> },
    Event(Share),
}

/// The `private_data` of a hooked struct: its former members, and what is dropped afterwards.
struct Hook<B> {
    release: Option<Release<B>>,
    private_data: *mut c_void,
    attached: Attached,
}

/// The callback by which a hook with an event is recognized. A static, because each mention of a
/// generic function may have another address.
static RUN_EVENT: Release<ArrowArray> = run::<ArrowArray>;

fn set<B: Base>(target: &mut B, attached: Attached) {
    let (release, private_data) = target.hook();
    let hook = Box::new(Hook {
        release: *release,
        private_data: *private_data,
        attached,
    });
    *release = Some(run::<B>);
    *private_data = Box::into_raw(hook).cast();
}

unsafe extern "C" fn run<B: Base>(this: *mut B) {
    // SAFETY: `set` put a hook there, which lives until the struct is released.
    unsafe {
        let (Some(_), private_data) = (*this).private_data() else {
            return;
        };
        let hook = Box::from_raw(private_data.cast::<Hook<B>>());
        let (release, private_data) = (*this).hook();
        *release = hook.release;
        *private_data = hook.private_data;
        B::release_once(this);
        discard(hook.attached);
    }
}

/// Drops `object` after the release of `target`, which is not released.
pub(crate) fn attach<B: Base>(target: &mut B, object: Box<dyn Send>) {
    set(target, Attached::Object { _object: object });
}

/// Gives every struct of an array a share of what its event lives in: a consumer may move any of
/// them out without asking us.
///
/// Errors: EINVAL for an array that is malformed, see [`walk`](crate::tree::walk); then nothing has
/// changed.
///
/// # Safety
///
/// `array` is as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
#[cfg(feature = "runtime")]
pub(crate) unsafe fn attach_event(
    operation: &str,
    array: *mut ArrowArray,
    share: &Share,
) -> Result<(), crate::Error> {
    let mut targets = Vec::new();
    // SAFETY: the caller vouches for the array, and the walk for the structs in it.
    unsafe {
        crate::tree::walk(operation, array, &mut |node: *mut ArrowArray| {
            if !(*node).is_released() {
                targets.push(node);
            }
            Ok(())
        })?;
        for target in targets {
            keep_event(&mut *target, Arc::clone(share));
        }
    }
    Ok(())
}

/// The share of the event that `parent` keeps alive. A foreign array is held back from now on: its
/// release runs when the last share is gone, the array's own among them.
pub(crate) fn event_share(parent: &mut ArrowArray) -> Share {
    if let (Some(release), hook) = parent.private_data() {
        if ptr::fn_addr_eq(release, RUN_EVENT) {
            // SAFETY: only `set` makes such a struct, and the hook lives until its release.
            if let Attached::Event(share) = unsafe { &(*hook.cast::<Hook<ArrowArray>>()).attached }
            {
                return Arc::clone(share);
            }
        }
    }
    // SAFETY: the copy takes the place of the original, whose callbacks are replaced.
    let share: Share = Arc::new(HeldBack(unsafe { ptr::read(parent) }));
    *parent.hook().0 = Some(release_children);
    keep_event(parent, Arc::clone(&share));
    share
}

/// Lets a struct that was moved out of an array keep the event of the array alive.
pub(crate) fn keep_event(target: &mut ArrowArray, share: Share) {
    set(target, Attached::Event(share));
    *target.hook().0 = Some(RUN_EVENT);
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
