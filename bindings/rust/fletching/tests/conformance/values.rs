// SPDX-License-Identifier: Apache-2.0

//! The operations of the subjects on owners.

use fletching::{DeviceArray, Error, Nested, Owner, Schema};

pub fn view<R: Nested>(owner: Owner<R>) -> Result<Owner<R>, Error> {
    owner.share()?.view()
}

pub fn attached_view(array: DeviceArray) -> Result<DeviceArray, Error> {
    let mut view = view(array)?;
    view.attach(Box::new(1))?;
    Ok(view)
}

/// Reads every string of a schema. The crate does not interpret formats.
pub fn read(schema: &Schema) -> Result<usize, Error> {
    let mut texts = schema.format().to_bytes().len() + schema.name().to_bytes().len();
    for (key, value) in &schema.metadata()? {
        texts += key.len() + value.len();
    }
    for below in schema
        .children()
        .iter()
        .flatten()
        .copied()
        .chain(schema.dictionary())
    {
        texts += read(below)?;
    }
    Ok(texts)
}

/// Reads the lists of any array, but not its buffers.
pub fn read_array(array: &DeviceArray) -> usize {
    let children = array.children().iter().flatten().copied();
    let below = children.chain(array.dictionary());
    array.buffers().len() + below.filter(|below| !below.is_released()).count()
}

#[cfg(feature = "dlpack")]
mod tensors {
    use fletching::dlpack::*;

    pub fn export_options() -> ExportOptions {
        // SAFETY: no other code writes to the suite's tensors.
        let access = Access::Writable(unsafe { Exclusive::new() });
        ExportOptions::default().access(access)
    }

    pub fn aligned_options() -> ExportOptions {
        export_options().aligned(true)
    }

    pub fn storage_options() -> ExportOptions {
        export_options().as_storage(true)
    }

    pub fn copy_options() -> ImportOptions {
        // SAFETY: the suite's CPU tensors are in host memory.
        let readable = unsafe { HostReadable::new() };
        ImportOptions::default().strided(Strided::Copy(readable))
    }

    pub fn list_options() -> ImportOptions {
        copy_options()
            .dimensions(Dimensions::FixedSizeLists)
            .as_storage(true)
    }
}

#[cfg(feature = "async")]
mod streams {
    use std::future::{poll_fn, Future};
    use std::pin::pin;
    use std::sync::{mpsc, Mutex};
    use std::task::Poll;
    use std::thread::{self, JoinHandle};

    use fletching::abi::ArrowDeviceArrayStream;
    use fletching::{
        AsyncHandler, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray, DeviceArrayStream,
        Error, Schema, SchemaBuilder, StreamReader,
    };
    use smol::block_on;
    use smol::stream::{iter, StreamExt};

    static SENDERS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

    /// Waits for the senders on drop: the suite counts the releases when its stream is released.
    struct Senders;

    impl Drop for Senders {
        fn drop(&mut self) {
            let senders = std::mem::take(&mut *SENDERS.lock().unwrap());
            for sender in senders {
                sender.join().unwrap();
            }
        }
    }

    /// The stream is dropped first, which cancels it.
    struct Batches(AsyncStream, #[allow(dead_code, reason = "dropped")] Senders);

    impl Iterator for Batches {
        type Item = Result<DeviceArray, Error>;

        fn next(&mut self) -> Option<Self::Item> {
            block_on(self.0.next())
        }
    }

    /// Returns the batches that arrive at a handler as a stream.
    pub fn receive(
        window: u32,
        connect: impl FnOnce(AsyncHandler) -> Result<(), Error>,
    ) -> Result<DeviceArrayStream, Error> {
        let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(window));
        let mut batches = Batches(stream, Senders);
        connect(handler)?;
        let schema = SchemaBuilder::from_schema(block_on(batches.0.schema())?)?.build()?;
        let device_type = batches.0.device_type();
        DeviceArrayStream::from_batches(schema, device_type, batches)
    }

    /// Sends on another thread. Returns the error for a handler that lacks a callback.
    pub fn send(
        schema: Schema,
        reader: StreamReader<ArrowDeviceArrayStream>,
        handler: AsyncHandler,
    ) -> Result<(), Error> {
        let producer = AsyncProducer::new(schema, reader.device_type(), iter(reader));
        let (started, start) = mpsc::channel();
        let sender = thread::spawn(move || {
            block_on(async {
                let mut sending = pin!(producer.send(handler));
                let first = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await;
                let (refused, is_open) = match first {
                    Poll::Ready(Err(error)) if error.message().starts_with("handler.") => {
                        (Err(error), false)
                    }
                    first => (Ok(()), first.is_pending()),
                };
                started.send(refused).expect("the subject waits");
                if is_open {
                    // The handler gets the error too, and the suite checks it.
                    let _ = sending.await;
                }
            });
        });
        SENDERS.lock().unwrap().push(sender);
        start.recv().expect("the thread has started")
    }
}

#[cfg(feature = "dlpack")]
pub use tensors::*;

#[cfg(feature = "async")]
pub use streams::*;
