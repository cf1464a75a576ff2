// SPDX-License-Identifier: Apache-2.0

//! The same data under releases of Rust, which are counted.

use std::sync::atomic::{AtomicI64, Ordering};

use fletching::{Error, Nested, Owner, Shared};

static EXPORTED: AtomicI64 = AtomicI64::new(0);
static RELEASED: AtomicI64 = AtomicI64::new(0);

/// How many structs were exported here.
pub fn exported() -> i64 {
    EXPORTED.load(Ordering::SeqCst)
}

/// How many of them have been released.
pub fn released() -> i64 {
    RELEASED.load(Ordering::SeqCst)
}

/// Counts the release of what it is attached to.
struct Count;

impl Count {
    fn new() -> Self {
        EXPORTED.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        RELEASED.fetch_add(1, Ordering::SeqCst);
    }
}

/// A struct of ours for every struct of `source`, which is released when they all are.
pub fn view_of<R: Nested>(source: &Shared<R>) -> Result<Owner<R>, Error> {
    let mut view = source.view()?;
    view.attach(Count::new())?;
    Ok(view)
}
