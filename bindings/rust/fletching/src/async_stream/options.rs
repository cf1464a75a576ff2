// SPDX-License-Identifier: Apache-2.0

//! The options of a consumer.

use crate::error::Error;
use crate::metadata::Metadata;
use crate::owner::Schema;

/// A schema or batch that [`AsyncOptions::accept`] may reject.
#[derive(Debug)]
#[non_exhaustive]
pub enum AsyncOffer<'a> {
    /// The schema of the stream.
    Schema(&'a Schema),
    /// A batch with this metadata. It is not extracted yet.
    Batch(Metadata<'a>),
}

pub(super) type Accept = Box<dyn FnMut(AsyncOffer<'_>) -> Result<(), Error> + Send>;

/// The window and the checks of an [`AsyncStream`](crate::AsyncStream). The default window is 16.
pub struct AsyncOptions {
    pub(super) window: u32,
    pub(super) accept: Option<Accept>,
}

impl AsyncOptions {
    /// Sets the number of batches that are requested but not yet taken, for back-pressure. They are
    /// requested when the schema arrives, and again as batches are taken, half a window at a time.
    /// With 0, batches are only requested by [`AsyncStream::request`](crate::AsyncStream::request).
    #[must_use]
    pub fn window(mut self, window: u32) -> Self {
        self.window = window;
        self
    }

    /// Sets a function that may reject the schema or a batch. Its error ends the stream and is the
    /// last item, and the producer gets its code. It is called on the producer's thread, one call
    /// at a time.
    #[must_use]
    pub fn accept(
        mut self,
        accept: impl FnMut(AsyncOffer<'_>) -> Result<(), Error> + Send + 'static,
    ) -> Self {
        self.accept = Some(Box::new(accept));
        self
    }
}

impl Default for AsyncOptions {
    fn default() -> Self {
        Self {
            window: 16,
            accept: None,
        }
    }
}
