// SPDX-License-Identifier: Apache-2.0

//! The same data under releases of Rust, which are counted.

use std::sync::atomic::{AtomicI64, Ordering};

use fletching::{DeviceArray, DeviceArrayStream, Error, Nested, Owner, Schema, Shared};

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
pub fn reexport<R: Nested>(source: Owner<R>) -> Result<Owner<R>, Error> {
    view_of(&source.share()?)
}

/// The same of a struct that others show too.
pub fn view_of<R: Nested>(source: &Shared<R>) -> Result<Owner<R>, Error> {
    let mut view = source.view()?;
    view.attach(Count::new())?;
    Ok(view)
}

/// A stream of ours, whose batches are passed to `observe` and exported again. An error passes on.
pub fn reexport_stream(
    source: DeviceArrayStream,
    mut observe: impl FnMut(&Schema, &DeviceArray) -> Result<(), Error> + Send + 'static,
) -> Result<DeviceArrayStream, Error> {
    let device_type = source.device_type();
    let mut reader = source.into_iter();
    let schema = reader.schema()?;
    let expected = reader.schema()?;
    let count = Count::new();
    let batches = reader.map(move |batch| {
        let _ = &count;
        let batch = batch?;
        observe(&expected, &batch)?;
        reexport(batch)
    });
    DeviceArrayStream::from_batches(reexport(schema)?, device_type, batches)
}
