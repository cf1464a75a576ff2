// SPDX-License-Identifier: Apache-2.0

//! The options of an export and of an import.

use super::promises::{EventHandled, Exclusive, HostReadable};
use super::stream::ConsumerStream;
use crate::c_core as core;
use crate::options::setters;

/// What to do about nulls, which DLPack has none of.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Nulls {
    /// An error when there are any, or when it is not known whether there are.
    #[default]
    Refuse,
    /// The same, and reads the validity bitmap where the host can read it and no work is pending.
    Count(HostReadable),
    /// Export the memory in their place as it is.
    Ignore,
}

/// The consumer's access to the memory.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Access {
    /// Read it: Arrow's buffers are shared and do not change.
    #[default]
    ReadOnly,
    /// Write to it as well.
    Writable(Exclusive),
    /// The same, and the tensor says that it is a copy made for this consumer.
    Copied(Exclusive),
}

/// How a tensor is exported: `ExportOptions::default().aligned(true)`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The consumer's access to the memory.
    pub access: Access,
    /// Export types that are not DLPack's as what stores them.
    pub as_storage: bool,
    /// What to do about nulls.
    pub nulls: Nulls,
    /// `data` is a multiple of 256, as dlpack.h demands, with the first element at `byte_offset`.
    /// By default it points to the first element: there are consumers that ignore `byte_offset`.
    /// On devices whose buffers are handles it is the handle in any case.
    pub aligned: bool,
    /// The stream of the consumer, which is ordered behind `sync_event` before the export returns.
    pub stream: Option<ConsumerStream>,
    /// The consumer has been ordered behind `sync_event`, or receives it in another way. DLPack's
    /// structs have no place for an event.
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

/// An option of the core.
fn when(is_set: bool, option: u32) -> u32 {
    if is_set {
        option
    } else {
        0
    }
}

/// The Arrow type of a tensor of several dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dimensions {
    /// arrow.fixed_shape_tensor: any order of the inner dimensions.
    #[default]
    FixedShapeTensor,
    /// Fixed-size lists within each other: the last dimension varies fastest.
    FixedSizeLists,
}

/// The treatment of a tensor whose elements are not in the order of an Arrow array.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Strided {
    /// An error.
    #[default]
    Refuse,
    /// Gather them in new memory, when the host can read the tensor; an error otherwise.
    Copy(HostReadable),
}

/// How a tensor is imported: `ImportOptions::default().as_storage(true)`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The Arrow type of a tensor of several dimensions.
    pub dimensions: Dimensions,
    /// The treatment of gaps and other orders.
    pub strided: Strided,
    /// Import types that are not Arrow's as what stores them.
    pub as_storage: bool,
    /// The stream that the producer was called with: the array gets a `sync_event` that happens
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
