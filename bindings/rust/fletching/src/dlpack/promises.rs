// SPDX-License-Identifier: Apache-2.0

//! Promises of the caller of an export or an import, which safe code cannot check.

/// The promise that the host may read the memory behind structs.
#[derive(Clone, Copy, Debug)]
pub struct HostReadable(());

impl HostReadable {
    /// # Safety
    ///
    /// Of every array and tensor that this is used with, and that is on a device whose memory the
    /// host can read, the memory is as the struct says: as many bits, or elements, as it counts, all
    /// initialized. Nobody changes it during the call; work on it that has no `sync_event` is done.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// The promise that memory is shared with no other code.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive(());

impl Exclusive {
    /// # Safety
    ///
    /// Until the tensor of an export with this is deleted, only its consumer reads or writes the
    /// memory: no clone of the owner, no view and no other tensor shows it.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// The promise that a consumer waits for an event.
#[derive(Clone, Copy, Debug)]
pub struct EventHandled(());

impl EventHandled {
    /// # Safety
    ///
    /// The consumer of a tensor that is exported with this reads the memory after `sync_event` has
    /// happened: it has, or the work of the consumer is ordered behind it.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}
