// SPDX-License-Identifier: Apache-2.0

//! Wakers run user code: they poll futures, drop streams and panic.

use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use fletching::{ArrowDeviceType, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray, Error};
use futures_core::Stream;

use crate::support::*;

type Task = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Polls its future inside `wake`, and drops the future when it completes.
struct InlineTask {
    task: Mutex<Option<Task>>,
    woken: AtomicBool,
}

impl InlineTask {
    fn spawn(task: Task) -> Arc<Self> {
        let inline = Arc::new(Self {
            task: Mutex::new(Some(task)),
            woken: AtomicBool::new(false),
        });
        Arc::clone(&inline).wake();
        inline
    }

    fn is_gone(&self) -> bool {
        self.task.lock().unwrap().is_none()
    }
}

impl Wake for InlineTask {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let Ok(mut task) = self.task.try_lock() else {
            return;
        };
        while self.woken.swap(false, Ordering::SeqCst) {
            let waker = Waker::from(Arc::clone(&self));
            let mut context = Context::from_waker(&waker);
            let polled = task.as_mut().map(|task| task.as_mut().poll(&mut context));
            if polled.is_some_and(|polled| polled.is_ready()) {
                *task = None;
            }
        }
    }
}

#[test]
fn cancel_drops_producer_inside_call() {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default());
    let task = InlineTask::spawn(Box::pin(producer(endless(0)).send(handler)));
    assert!(!task.is_gone());
    drop(stream);
    assert!(task.is_gone());
}

/// A stream that ends when it is allowed to.
struct ManuallyEndedSource(Arc<AtomicBool>);

impl Stream for ManuallyEndedSource {
    type Item = Result<DeviceArray, Error>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.load(Ordering::SeqCst) {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    }
}

#[test]
fn request_drops_producer_inside_call() {
    let may_end = Arc::new(AtomicBool::new(false));
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(0));
    let source = ManuallyEndedSource(Arc::clone(&may_end));
    let producer = AsyncProducer::new(schema(), ArrowDeviceType::CPU, source);
    let task = InlineTask::spawn(Box::pin(producer.send(handler)));
    may_end.store(true, Ordering::SeqCst);
    assert!(!task.is_gone());
    stream.request(1).unwrap();
    assert!(task.is_gone());
    assert!(matches!(poll_next(&mut stream), Poll::Ready(None)));
}

/// A waker whose first clone panics.
struct PanickingCloneWaker {
    clones: AtomicUsize,
    wakes: AtomicUsize,
}

mod raw_waker {
    use super::*;
    use std::task::{RawWaker, RawWakerVTable};

    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, |_| ());

    unsafe fn of(data: *const ()) -> &'static PanickingCloneWaker {
        // SAFETY: the tests pass a static.
        unsafe { &*data.cast() }
    }

    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: as above.
        let first = unsafe { of(data) }.clones.fetch_add(1, Ordering::SeqCst) == 0;
        assert!(!first, "no clone");
        RawWaker::new(data, &TABLE)
    }

    unsafe fn wake(data: *const ()) {
        // SAFETY: as above.
        unsafe { wake_by_ref(data) }
    }

    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: as above.
        unsafe { of(data) }.wakes.fetch_add(1, Ordering::SeqCst);
    }

    pub fn new(state: &'static PanickingCloneWaker) -> Waker {
        let data = std::ptr::from_ref(state).cast();
        // SAFETY: the functions of the table conform to its documentation.
        unsafe { Waker::new(data, &TABLE) }
    }
}

#[test]
fn stream_wakes_after_waker_clone_panic() {
    static STATE: PanickingCloneWaker = PanickingCloneWaker {
        clones: AtomicUsize::new(0),
        wakes: AtomicUsize::new(0),
    };
    let waker = raw_waker::new(&STATE);
    let (peer, mut stream) = open(1);
    let mut poll = || {
        let mut context = Context::from_waker(&waker);
        catch_unwind(AssertUnwindSafe(|| {
            Pin::new(&mut stream).poll_next(&mut context)
        }))
    };
    assert!(poll().is_err());
    assert!(poll().unwrap().is_pending());
    peer.task(1);
    assert_eq!(STATE.wakes.load(Ordering::SeqCst), 1);
    assert_eq!(rows(&mut stream), [1]);
    peer.end();
    peer.release();
}
