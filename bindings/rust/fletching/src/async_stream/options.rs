// SPDX-License-Identifier: Apache-2.0

//! The options of a consumer.

use crate::error::Error;
use crate::metadata::Metadata;
use crate::owner::Schema;

/// An offer of a producer, which [`AsyncOptions::accept`] may refuse.
#[derive(Debug)]
#[non_exhaustive]
pub enum AsyncOffer<'a> {
    /// The schema of the stream.
    Schema(&'a Schema),
    /// A batch with this metadata, which is not extracted yet.
    Batch(Metadata<'a>),
}

pub(super) type Accept = Box<dyn FnMut(AsyncOffer<'_>) -> Result<(), Error> + Send>;

/// The window and the checks of an [`AsyncStream`](crate::AsyncStream). By default the window is 16.
pub struct AsyncOptions {
    pub(super) window: u32,
    pub(super) accept: Option<Accept>,
}

impl AsyncOptions {
    /// How many batches are requested and not taken: the back-pressure. They are requested when the
    /// schema arrives, and again as batches are taken, half a window at a time. With 0 only
    /// [`AsyncStream::request`](crate::AsyncStream::request) requests batches.
    #[must_use]
    pub fn window(mut self, window: u32) -> Self {
        self.window = window;
        self
    }

    /// May refuse the schema or a batch: the error ends the stream and is its last item, and the
    /// producer gets its code. Called on the producer's thread, one call at a time.
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
