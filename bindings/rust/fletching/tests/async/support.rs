// SPDX-License-Identifier: Apache-2.0

//! A source, a peer for each side, and an executor that is driven by hand.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, CStr};
use std::future::Future;
use std::pin::Pin;
use std::ptr::{null, null_mut, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use fletching::abi::{
    ArrowArray, ArrowAsyncDeviceStreamHandler as Handler, ArrowAsyncProducer as Producer,
    ArrowAsyncTask as Task, ArrowDeviceArray, ArrowSchema,
};
use fletching::{
    Array, ArrowDeviceType, AsyncBatch, AsyncHandler, AsyncOptions, AsyncProducer, AsyncStream,
    DeviceArray, Error, Metadata, Schema, SchemaBuilder,
};
use futures_core::Stream;

// --- Data ---------------------------------------------------------------------------------------

pub fn schema() -> Schema {
    SchemaBuilder::new("i").build().unwrap()
}

pub fn batch(length: i32) -> DeviceArray {
    Array::from((0..length).collect::<Vec<_>>()).into()
}

/// Counts what is alive.
#[derive(Clone, Default)]
pub struct Live(pub Arc<AtomicUsize>);

/// Subtracts what was added, when it is dropped.
pub struct Counted(Live);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0 .0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Live {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub fn guard(&self) -> Counted {
        Counted(self.clone())
    }

    pub fn batch(&self, length: i32) -> DeviceArray {
        self.0.fetch_add(1, Ordering::SeqCst);
        let mut batch = batch(length);
        batch.attach(Counted(self.clone())).unwrap();
        batch
    }
}

impl std::ops::Deref for Live {
    type Target = AtomicUsize;

    fn deref(&self) -> &AtomicUsize {
        &self.0
    }
}

/// A stream of what is in the queue, then its end, or nothing more.
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

/// As many batches, of 1 row, 2 rows and so on.
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
pub struct Wakes {
    pub count: AtomicUsize,
    woken: AtomicBool,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.woken.store(true, Ordering::SeqCst);
    }
}

/// A future that is polled when it was woken.
pub struct Hand<T> {
    pub future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    pub wakes: Arc<Wakes>,
    pub output: Option<T>,
}

impl<T> Hand<T> {
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        let wakes = Arc::new(Wakes::default());
        wakes.woken.store(true, Ordering::SeqCst);
        Self {
            future: Some(Box::pin(future)),
            wakes,
            output: None,
        }
    }

    /// Polls until nothing wakes the future.
    pub fn run(&mut self) -> &mut Self {
        while self.wakes.woken.swap(false, Ordering::SeqCst) {
            let Some(future) = &mut self.future else {
                break;
            };
            let waker = Waker::from(Arc::clone(&self.wakes));
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.output = Some(output);
                self.future = None;
            }
        }
        self
    }

    pub fn is_ready(&self) -> bool {
        self.output.is_some()
    }
}

struct Unparks(std::thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// On this thread, and under Miri too.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// One poll of a stream.
pub fn poll_next(stream: &mut AsyncStream) -> Poll<Option<Result<DeviceArray, Error>>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(Waker::noop()))
}

/// The next item as the number of its rows, or its negative code; 0 at the end.
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

/// A stream whose schema is here, with a window.
pub fn open(window: u32) -> (ProducerPeer, AsyncStream) {
    let (mut peer, stream) = created(window);
    assert_eq!(peer.schema(schema()), 0);
    (peer, stream)
}

pub fn created(window: u32) -> (ProducerPeer, AsyncStream) {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(window));
    (ProducerPeer::new(handler), stream)
}

// --- A consumer ---------------------------------------------------------------------------------

type Inside = Box<dyn FnMut(&ConsumerPeer, &str) + Send>;

/// A consumer that writes down what is called, and keeps the tasks.
#[derive(Default)]
pub struct ConsumerPeer {
    pub handler: UnsafeCell<Handler>,
    pub calls: Mutex<Vec<String>>,
    pub tasks: Mutex<VecDeque<Task>>,
    /// What a call returns, by its name.
    pub refuses: Mutex<Option<(&'static str, c_int)>>,
    /// Called inside each call, except on_error and release.
    pub inside: Mutex<Option<Inside>>,
    pub metadata: Mutex<Vec<Vec<u8>>>,
    running: AtomicBool,
    pub overlaps: AtomicUsize,
}

// SAFETY: the pointers are the producer's, and its calls are thread-safe.
unsafe impl Send for ConsumerPeer {}
// SAFETY: as above.
unsafe impl Sync for ConsumerPeer {}

impl ConsumerPeer {
    pub fn new() -> Arc<Self> {
        let peer = Arc::new(Self::default());
        peer.set(|handler| {
            *handler = Handler {
                on_schema: Some(on_schema),
                on_next_task: Some(on_next_task),
                on_error: Some(on_error),
                release: Some(release),
                producer: null_mut(),
                private_data: Arc::as_ptr(&peer).cast_mut().cast(),
            }
        });
        peer
    }

    /// Changes the handler, which no producer has.
    pub fn set(&self, change: impl FnOnce(&mut Handler)) {
        // SAFETY: a test sets it before it hands it out.
        change(unsafe { &mut *self.handler.get() });
    }

    /// With a share of the peer, until the release.
    pub fn owner(self: &Arc<Self>) -> AsyncHandler {
        let _share = Arc::into_raw(Arc::clone(self));
        let handler = NonNull::new(self.handler.get()).unwrap();
        // SAFETY: the peer outlives the handler.
        unsafe { AsyncHandler::from_raw(handler) }
    }

    /// For another stream.
    pub fn owner_again(self: &Arc<Self>) -> AsyncHandler {
        self.set(|handler| handler.release = Some(release));
        self.owner()
    }

    pub fn producer(&self) -> *mut Producer {
        // SAFETY: the producer has set it.
        unsafe { (*self.handler.get()).producer }
    }

    pub fn request(&self, n: i64) {
        // SAFETY: the producer lives until its future is dropped.
        unsafe { Producer::call_request(self.producer(), n).unwrap() }
    }

    pub fn cancel(&self) {
        // SAFETY: as above.
        unsafe { Producer::call_cancel(self.producer()).unwrap() }
    }

    /// Extracts the oldest task: the number of rows, or the negative code.
    pub fn extract(&self) -> i64 {
        let mut task = self.tasks.lock().unwrap().pop_front().expect("a task");
        let mut array = DeviceArray::default();
        // SAFETY: each task is extracted once.
        let code = unsafe { Task::call_extract_data(&raw mut task, array.out()).unwrap() };
        assert_eq!(code != 0, array.is_released());
        if code == 0 {
            array.length()
        } else {
            -i64::from(code)
        }
    }

    pub fn drop_task(&self) -> c_int {
        let mut task = self.tasks.lock().unwrap().pop_front().expect("a task");
        // SAFETY: each task is extracted once.
        unsafe { Task::call_extract_data(&raw mut task, null_mut()).unwrap() }
    }

    /// The calls since the last time.
    pub fn calls(&self) -> String {
        std::mem::take(&mut *self.calls.lock().unwrap()).join(", ")
    }

    fn called(&self, name: &str, text: String) -> c_int {
        if self.running.swap(true, Ordering::SeqCst) {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        self.calls.lock().unwrap().push(text);
        let inside = self.inside.lock().unwrap().take();
        if let Some(mut inside) = inside.filter(|_| !["error", "release"].contains(&name)) {
            inside(self, name);
            self.inside.lock().unwrap().get_or_insert(inside);
        }
        self.running.store(false, Ordering::SeqCst);
        let refuses = *self.refuses.lock().unwrap();
        refuses
            .filter(|refuses| refuses.0 == name)
            .map_or(0, |refuses| refuses.1)
    }
}

unsafe fn peer<'a>(this: *mut Handler) -> &'a ConsumerPeer {
    // SAFETY: the handler is a peer's.
    unsafe { &*(*this).private_data.cast() }
}

unsafe extern "C" fn on_schema(this: *mut Handler, schema: *mut ArrowSchema) -> c_int {
    // SAFETY: the producer passes the handler and a schema.
    unsafe {
        let code = peer(this).called("schema", "schema".into());
        if code == 0 {
            drop(Schema::move_from(schema));
        }
        code
    }
}

unsafe extern "C" fn on_next_task(
    this: *mut Handler,
    task: *mut Task,
    metadata: *const c_char,
) -> c_int {
    // SAFETY: the producer passes the handler, and a task or NULL.
    let (peer, task, metadata) =
        unsafe { (peer(this), task.as_ref(), Metadata::read(metadata).unwrap()) };
    let Some(task) = task else {
        return peer.called("end", "end".into());
    };
    peer.metadata
        .lock()
        .unwrap()
        .push(metadata.block().to_vec());
    peer.tasks.lock().unwrap().push_back(Task { ..*task });
    let code = peer.called("task", "task".into());
    if code != 0 {
        peer.tasks.lock().unwrap().pop_back();
    }
    code
}

unsafe extern "C" fn on_error(
    this: *mut Handler,
    code: c_int,
    message: *const c_char,
    metadata: *const c_char,
) {
    // SAFETY: the producer passes the handler, and texts.
    let (peer, text) = unsafe { (peer(this), CStr::from_ptr(message)) };
    assert!(metadata.is_null());
    peer.called("error", format!("error {code} {}", text.to_str().unwrap()));
}

unsafe extern "C" fn release(this: *mut Handler) {
    // SAFETY: the producer passes the handler.
    unsafe {
        let peer: *const ConsumerPeer = (*this).private_data.cast();
        (*this).release = None;
        (*peer).called("release", "release".into());
        drop(Arc::from_raw(peer));
    }
}

// --- A producer ---------------------------------------------------------------------------------

type Once = Box<dyn FnOnce(&str) + Send>;

/// A producer whose calls a test makes one by one.
pub struct ProducerPeer {
    pub handler: *mut Handler,
    pub object: *mut Producer,
    pub log: Arc<PeerLog>,
}

// SAFETY: the calls of a handler may be made on any thread.
unsafe impl Send for ProducerPeer {}
// SAFETY: as above; a test makes one call at a time, or means not to.
unsafe impl Sync for ProducerPeer {}

#[derive(Default)]
pub struct PeerLog {
    /// What the consumer has called.
    pub calls: Mutex<Vec<String>>,
    /// Called inside request, cancel and extract_data.
    pub inside: Mutex<Option<Once>>,
}

impl PeerLog {
    fn called(&self, what: String) {
        let inside = self.inside.lock().unwrap().take();
        let _ = inside.map(|inside| inside(&what));
        self.calls.lock().unwrap().push(what);
    }
}

/// What the private_data of a task points to, which extract_data frees.
struct Given {
    number: i32,
    code: c_int,
    batch: DeviceArray,
    log: Arc<PeerLog>,
}

impl ProducerPeer {
    pub fn new(handler: AsyncHandler) -> Self {
        let log = Arc::new(PeerLog::default());
        let object = Box::into_raw(Box::new(Producer {
            device_type: ArrowDeviceType::CPU,
            request: Some(request),
            cancel: Some(cancel),
            additional_metadata: null(),
            private_data: Arc::as_ptr(&log).cast_mut().cast(),
        }));
        let handler = handler.into_raw();
        // SAFETY: the handler lives until its release.
        unsafe { (*handler).producer = object }
        Self {
            handler,
            object,
            log,
        }
    }

    pub fn schema(&mut self, schema: Schema) -> c_int {
        let mut raw = schema.into_raw();
        // SAFETY: the handler is not released, and takes the schema or leaves it.
        unsafe {
            let code = Handler::call_on_schema(self.handler, &raw mut raw).unwrap();
            drop(Schema::from_raw(raw));
            code
        }
    }

    pub fn task(&self, number: i32) -> c_int {
        self.give(number, batch(number), 0, &[])
    }

    pub fn give(&self, number: i32, batch: DeviceArray, code: c_int, metadata: &[u8]) -> c_int {
        let given = Box::new(Given {
            number,
            code,
            batch,
            log: Arc::clone(&self.log),
        });
        let given = Box::into_raw(given);
        let mut task = Task {
            extract_data: Some(extract),
            private_data: given.cast(),
        };
        let metadata = if metadata.is_empty() {
            null()
        } else {
            metadata.as_ptr().cast()
        };
        // SAFETY: the handler is not released. A task that it refuses is not extracted.
        unsafe {
            let code = Handler::call_on_next_task(self.handler, &raw mut task, metadata).unwrap();
            // Gone when the call has returned.
            task = Task::zeroed();
            assert!(task.extract_data.is_none());
            if code != 0 {
                drop(Box::from_raw(given));
            }
            code
        }
    }

    pub fn end(&self) -> c_int {
        // SAFETY: the handler is not released.
        unsafe { Handler::call_on_next_task(self.handler, null_mut(), null()).unwrap() }
    }

    pub fn error(&self, code: c_int, text: *const c_char, metadata: *const c_char) {
        // SAFETY: the handler is not released.
        unsafe { Handler::call_on_error(self.handler, code, text, metadata).unwrap() }
    }

    pub fn release(&self) {
        // SAFETY: the handler is not released.
        unsafe { Handler::release_once(self.handler) }
    }

    pub fn calls(&self) -> String {
        std::mem::take(&mut *self.log.calls.lock().unwrap()).join(", ")
    }
}

impl Drop for ProducerPeer {
    fn drop(&mut self) {
        // SAFETY: a test is done with the stream.
        drop(unsafe { Box::from_raw(self.object) });
    }
}

unsafe fn log<'a>(this: *mut Producer) -> &'a PeerLog {
    // SAFETY: the object is a peer's.
    unsafe { &*(*this).private_data.cast() }
}

unsafe extern "C" fn request(this: *mut Producer, n: i64) {
    // SAFETY: the consumer passes the object.
    unsafe { log(this) }.called(format!("request {n}"));
}

unsafe extern "C" fn cancel(this: *mut Producer) {
    // SAFETY: the consumer passes the object.
    unsafe { log(this) }.called("cancel".into());
}

unsafe extern "C" fn extract(this: *mut Task, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: the consumer passes a copy of the task, once.
    unsafe {
        let given = Box::from_raw((*this).private_data.cast::<Given>());
        let what = if out.is_null() { "drop" } else { "extract" };
        given.log.called(format!("{what} {}", given.number));
        if given.code != 0 {
            // A partial fill, which is not the consumer's to look at.
            if let Some(out) = out.as_mut() {
                out.array.release = Some(never);
            }
        } else if !out.is_null() {
            given.batch.move_to(out);
        }
        given.code
    }
}

unsafe extern "C" fn never(_: *mut ArrowArray) {
    std::process::abort();
}
