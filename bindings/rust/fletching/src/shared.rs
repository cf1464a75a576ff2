// SPDX-License-Identifier: Apache-2.0

//! Shared ownership of a schema or an array.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::Error;
use crate::owner::Owner;
use crate::raw::Nested;

/// Shares a schema, an array, or a device array with its event, without copying strings or buffers.
///
/// The struct is released when the last `Shared`, the last view, and the last child that was moved
/// out of a view are gone, on the thread of that last drop. A view is an ordinary struct: its
/// consumer may move it, release it, and move children out, without effect on other views.
#[derive(Debug)]
pub struct Shared<R: Nested>(pub(crate) Arc<Owner<R>>);

impl<R: Nested> Owner<R> {
    /// Shares the struct. Errors: EINVAL if it is released.
    pub fn share(self) -> Result<Shared<R>, Error> {
        if self.is_released() {
            return Err(Error::invalid(
                "share: struct is released: expected a live struct",
            ));
        }
        Ok(Shared(Arc::new(self)))
    }
}

impl<R: Nested> Shared<R> {
    /// Returns the struct if there is no other `Shared` and no view of it, otherwise `self`.
    pub fn try_unwrap(self) -> Result<Owner<R>, Self> {
        Arc::try_unwrap(self.0).map_err(Self)
    }
}

impl<R: Nested> Clone for Shared<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Nested> Deref for Shared<R> {
    type Target = Owner<R>;

    fn deref(&self) -> &Owner<R> {
        &self.0
    }
}
