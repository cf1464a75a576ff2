// SPDX-License-Identifier: Apache-2.0

//! Test data, a source, and an executor that is driven manually.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use fletching::{
    Array, ArrowDeviceType, AsyncBatch, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray,
    Error, Schema, SchemaBuilder,
};
use futures_core::Stream;

pub use crate::consumer_peer::ConsumerPeer;
pub use crate::producer_peer::ProducerPeer;

// --- Data ---------------------------------------------------------------------------------------

pub fn schema() -> Schema {
    SchemaBuilder::new("i").build().unwrap()
}

pub fn batch(length: i32) -> DeviceArray {
    Array::from((0..length).collect::<Vec<_>>()).into()
}

/// A batch on another device than the stream.
pub fn on_cuda() -> DeviceArray {
    let mut raw = batch(1).into_raw();
    raw.device_type = ArrowDeviceType::CUDA;
    // SAFETY: no code reads the array.
    unsafe { DeviceArray::from_raw(raw) }
}

pub const ON_CUDA: &str = "batch: device_type differs from the stream's: expected cpu, got cuda \
                           (rule async-producer.one-device-type)";

/// A batch with a column that the schema lacks.
pub fn with_column() -> DeviceArray {
    Array::from_columns([vec![1].into()]).unwrap().into()
}

/// Counts live objects.
#[derive(Clone, Default)]
pub struct LiveBatches(pub Arc<AtomicUsize>);

/// Decrements the count when it is dropped.
struct Counted(LiveBatches);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0 .0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl LiveBatches {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub fn batch(&self, length: i32) -> DeviceArray {
        self.0.fetch_add(1, Ordering::SeqCst);
        let mut batch = batch(length);
        batch.attach(Counted(self.clone())).unwrap();
        batch
    }
}

impl std::ops::Deref for LiveBatches {
    type Target = AtomicUsize;

    fn deref(&self) -> &AtomicUsize {
        &self.0
    }
}

/// A stream of the queued items, followed by its end if `ends`, otherwise pending.
pub struct Items {
    pub items: VecDeque<Result<AsyncBatch, Error>>,
    pub ends: bool,
}

impl Stream for Items {
    type Item = Result<AsyncBatch, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.items.pop_front() {
            None if !self.ends => Poll::Pending,
            item => Poll::Ready(item),
        }
    }
}

pub fn items<B: Into<AsyncBatch>>(items: impl IntoIterator<Item = Result<B, Error>>) -> Items {
    Items {
        items: items.into_iter().map(|item| item.map(Into::into)).collect(),
        ends: true,
    }
}

/// Makes `count` batches, of 1 row, 2 rows and so on.
pub fn batches(count: i32) -> Items {
    items((1..=count).map(|length| Ok(batch(length))))
}

pub fn endless(count: i32) -> Items {
    Items {
        ends: false,
        ..batches(count)
    }
}

pub fn producer(items: Items) -> AsyncProducer<std::future::Ready<Result<(Schema, Items), Error>>> {
    AsyncProducer::new(schema(), ArrowDeviceType::CPU, items)
}

// --- An executor --------------------------------------------------------------------------------

#[derive(Default)]
pub struct WakeCounter {
    pub count: AtomicUsize,
    woken: AtomicBool,
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.woken.store(true, Ordering::SeqCst);
    }
}

/// A future that is polled only when it was woken.
pub struct ManualTask<T> {
    future: Pin<Box<dyn Future<Output = T> + Send>>,
    pub wakes: Arc<WakeCounter>,
    pub output: Option<T>,
}

impl<T> ManualTask<T> {
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        let wakes = Arc::new(WakeCounter::default());
        wakes.woken.store(true, Ordering::SeqCst);
        Self {
            future: Box::pin(future),
            wakes,
            output: None,
        }
    }

    /// Polls until the future is not woken.
    pub fn run(&mut self) -> &mut Self {
        while self.output.is_none() && self.wakes.woken.swap(false, Ordering::SeqCst) {
            let waker = Waker::from(Arc::clone(&self.wakes));
            let polled = self.future.as_mut().poll(&mut Context::from_waker(&waker));
            // The future is kept, because a producer's object lives as long as it.
            self.output = match polled {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            };
        }
        self
    }

    pub fn is_ready(&self) -> bool {
        self.output.is_some()
    }
}

struct ThreadWaker(std::thread::Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread; also works under Miri.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub fn poll_next(stream: &mut AsyncStream) -> Poll<Option<Result<DeviceArray, Error>>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(Waker::noop()))
}

/// Returns the number of rows of the next item, its negative code, or 0 at the end.
pub async fn next(stream: &mut AsyncStream) -> i64 {
    let item = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await;
    row(item)
}

pub fn row(item: Option<Result<DeviceArray, Error>>) -> i64 {
    item.map_or(0, |item| {
        item.map_or_else(|error| -i64::from(error.code()), |b| b.length())
    })
}

pub fn rows(stream: &mut AsyncStream) -> Vec<i64> {
    std::iter::from_fn(|| match poll_next(stream) {
        Poll::Ready(Some(item)) => Some(row(Some(item))),
        _ => None,
    })
    .collect()
}

/// Makes a stream with a window that has received its schema.
pub fn open(window: u32) -> (ProducerPeer, AsyncStream) {
    let (mut peer, stream) = created(window);
    assert_eq!(peer.schema(schema()), 0);
    (peer, stream)
}

pub fn created(window: u32) -> (ProducerPeer, AsyncStream) {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(window));
    (ProducerPeer::new(handler), stream)
}
