// SPDX-License-Identifier: Apache-2.0

//! Guarantees that the caller of an export or import gives, because safe code cannot check them.

/// The guarantee that the host may read the memory of arrays and tensors.
#[derive(Clone, Copy, Debug)]
pub struct HostReadable(());

impl HostReadable {
    /// # Safety
    ///
    /// For every array and tensor passed with this value whose memory the host can read: the memory
    /// matches the struct, and all its bits or elements are initialized. Nobody changes it during
    /// the call, and work on it without a `sync_event` is done.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// The guarantee that no other code uses the memory.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive(());

impl Exclusive {
    /// # Safety
    ///
    /// Until the exported tensor is deleted, only its consumer reads or writes the memory: it is
    /// not shared by a clone of the owner, a view or another tensor.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// The guarantee that a consumer waits for an event.
#[derive(Clone, Copy, Debug)]
pub struct EventHandled(());

impl EventHandled {
    /// # Safety
    ///
    /// The consumer of the exported tensor reads the memory after `sync_event`: the event has
    /// completed, or the consumer's work is ordered after it.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}
