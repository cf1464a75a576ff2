// SPDX-License-Identifier: Apache-2.0

//! Options for exports and imports.

use super::promises::{EventHandled, Exclusive, HostReadable};
use super::stream::ConsumerStream;
use crate::c_core as core;
use crate::options::setters;

/// The treatment of nulls, which DLPack does not have.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Nulls {
    /// Returns an error if there are nulls, or if their number is unknown.
    #[default]
    Refuse,
    /// Like `Refuse`, but counts the nulls in the validity bitmap if the host can read it and no
    /// work is pending.
    Count(HostReadable),
    /// Exports the memory of nulls unchanged.
    Ignore,
}

/// The consumer's access to the memory.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Access {
    /// The consumer may read: Arrow's buffers are shared and immutable.
    #[default]
    ReadOnly,
    /// The consumer may also write.
    Writable(Exclusive),
    /// The consumer may also write, and the tensor is marked as a copy made for it.
    Copied(Exclusive),
}

/// Options for an export: `ExportOptions::default().aligned(true)`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The consumer's access to the memory.
    pub access: Access,
    /// Exports types that DLPack lacks as their storage type.
    pub as_storage: bool,
    /// The treatment of nulls.
    pub nulls: Nulls,
    /// Makes `data` a multiple of 256, as dlpack.h requires, and sets `byte_offset` to the first
    /// element. By default, `data` points to the first element, because some consumers ignore
    /// `byte_offset`. On devices whose buffers are handles, `data` is always the handle.
    pub aligned: bool,
    /// The consumer's stream. The export makes it wait for `sync_event`.
    pub stream: Option<ConsumerStream>,
    /// The guarantee that the consumer is ordered after `sync_event`, or receives it in another
    /// way. DLPack's structs have no member for an event.
    pub event_handled: Option<EventHandled>,
}

setters! {
    ExportOptions {
        access: Access,
        as_storage: bool,
        nulls: Nulls,
        aligned: bool,
        stream: Option<ConsumerStream>,
        event_handled: Option<EventHandled>,
    }
}

impl Default for ExportOptions {
    fn default() -> Self {
        Self {
            access: Access::ReadOnly,
            as_storage: false,
            nulls: Nulls::Refuse,
            aligned: false,
            stream: None,
            event_handled: None,
        }
    }
}

impl ExportOptions {
    pub(super) fn to_core(self) -> u32 {
        let access = match self.access {
            Access::ReadOnly => 0,
            Access::Writable(_) => core::FLETCHING_TENSOR_WRITABLE,
            Access::Copied(_) => core::FLETCHING_TENSOR_WRITABLE | core::FLETCHING_TENSOR_COPIED,
        };
        let nulls = match self.nulls {
            Nulls::Refuse => core::FLETCHING_TENSOR_NO_READS,
            Nulls::Count(_) => 0,
            Nulls::Ignore => core::FLETCHING_TENSOR_NO_READS | core::FLETCHING_TENSOR_IGNORE_NULLS,
        };
        let is_handled = self.event_handled.is_some();
        access
            | nulls
            | when(self.as_storage, core::FLETCHING_TENSOR_AS_STORAGE)
            | when(self.aligned, core::FLETCHING_TENSOR_ALIGNED)
            | when(is_handled, core::FLETCHING_TENSOR_EVENT_HANDLED)
    }
}

fn when(is_set: bool, option: u32) -> u32 {
    if is_set {
        option
    } else {
        0
    }
}

/// The Arrow type of a tensor with several dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dimensions {
    /// arrow.fixed_shape_tensor, with any order of the inner dimensions.
    #[default]
    FixedShapeTensor,
    /// Nested fixed-size lists: the last dimension varies fastest.
    FixedSizeLists,
}

/// The treatment of a tensor whose elements are not in the order of an Arrow array.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Strided {
    /// Returns an error.
    #[default]
    Refuse,
    /// Copies the elements to new memory if the host can read the tensor, otherwise returns an
    /// error.
    Copy(HostReadable),
}

/// Options for an import: `ImportOptions::default().as_storage(true)`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The Arrow type of a tensor with several dimensions.
    pub dimensions: Dimensions,
    /// The treatment of gaps and other orders.
    pub strided: Strided,
    /// Imports types that Arrow lacks as their storage type.
    pub as_storage: bool,
    /// The stream that was passed to the producer. The array gets a `sync_event` that completes
    /// when the current work on that stream is done. Before a copy, the host waits for the stream.
    pub stream: Option<ConsumerStream>,
}

setters! {
    ImportOptions {
        dimensions: Dimensions,
        strided: Strided,
        as_storage: bool,
        stream: Option<ConsumerStream>,
    }
}

impl ImportOptions {
    pub(super) fn to_core(self) -> u32 {
        let is_lists = self.dimensions == Dimensions::FixedSizeLists;
        let is_copy = matches!(self.strided, Strided::Copy(_));
        when(is_lists, core::FLETCHING_TENSOR_LISTS)
            | when(is_copy, core::FLETCHING_TENSOR_COPY)
            | when(self.as_storage, core::FLETCHING_TENSOR_AS_STORAGE)
    }
}
