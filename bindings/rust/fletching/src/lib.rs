// SPDX-License-Identifier: Apache-2.0

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_debug_implementations)]

mod array_builder;
#[cfg(feature = "_arrow")]
mod arrow_versions;
#[cfg(feature = "async")]
mod async_stream;
mod batch_type;
mod block;
#[cfg(any(feature = "dlpack", feature = "runtime"))]
mod c_core;
mod chain;
mod columns;
pub mod cuda_array_interface;
mod device_builder;
#[cfg(feature = "dlpack")]
pub mod dlpack;
mod errno;
mod error;
mod handover;
mod hook;
mod metadata;
mod options;
mod owner;
mod raw;
mod reading;
#[cfg(feature = "runtime")]
pub mod runtime;
mod schema_builder;
mod shared;
mod stream;
mod stream_producer;
mod structs;
mod tree;
#[cfg(feature = "validate")]
pub mod validate;
mod values;
mod view;

pub use fletching_abi as abi;
pub use fletching_abi::ArrowDeviceType;

pub use array_builder::{ArrayBuilder, ArrayCapacity, ArrayValues, Node};
#[cfg(feature = "_arrow")]
pub use arrow_versions::*;
#[cfg(feature = "async")]
pub use async_stream::{
    AsyncAbort, AsyncBatch, AsyncHandler, AsyncOffer, AsyncOptions, AsyncProducer, AsyncSending,
    AsyncStream,
};
pub use error::Error;
pub use metadata::{encode_metadata, Metadata, MetadataIter};
pub use options::{Options, Warning};
pub use owner::{Array, ArrayStream, DeviceArray, DeviceArrayStream, Owner, Schema};
pub use raw::{Nested, Raw};
pub use reading::Bits;
pub use schema_builder::SchemaBuilder;
pub use shared::Shared;
pub use stream::{BatchOf, RawStream, StreamReader};
pub use values::Primitive;
