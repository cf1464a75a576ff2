// SPDX-License-Identifier: Apache-2.0

//! Debug output, without the user's functions and futures.

use std::fmt::{Debug, Formatter, Result};

use super::batch::Data;
use super::{AsyncAbort, AsyncBatch, AsyncOptions, AsyncProducer, AsyncSending, AsyncStream};
use crate::metadata::Metadata;

impl Debug for AsyncOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("AsyncOptions")
            .field("window", &self.window)
            .field("accept", &self.accept.is_some())
            .finish()
    }
}

impl Debug for AsyncStream {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("AsyncStream").finish_non_exhaustive()
    }
}

impl<F> Debug for AsyncProducer<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("AsyncProducer")
            .field("device_type", &self.device_type)
            .field("calls_per_poll", &self.calls_per_poll)
            .finish_non_exhaustive()
    }
}

impl Debug for AsyncBatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut text = f.debug_struct("AsyncBatch");
        match &self.data {
            Data::Ready(array) => text.field("array", array),
            Data::Made(_) => text.field("array", &"made later"),
        };
        text.field("metadata", &Metadata::from_bytes(&self.metadata).ok());
        text.finish()
    }
}

impl<F, St> Debug for AsyncSending<F, St> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("AsyncSending")
            .field("device_type", &self.device_type)
            .field("sent", &self.sent)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Debug for AsyncAbort {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("AsyncAbort").finish_non_exhaustive()
    }
}
