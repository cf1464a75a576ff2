// SPDX-License-Identifier: Apache-2.0

//! The source for the producer's replay.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures_core::Stream;

use crate::{AsyncBatch, Error, Schema};

/// The items that the source can return. Nothing is taken after it is closed.
#[derive(Default)]
pub(super) struct Offers {
    pub(super) schema: Option<Schema>,
    pub(super) batches: VecDeque<AsyncBatch>,
    pub(super) ended: bool,
    pub(super) closed: bool,
    waker: Option<Waker>,
}

#[derive(Clone, Default)]
pub(super) struct Source(Arc<Mutex<Offers>>);

impl Source {
    pub(super) fn offer(&self, change: impl FnOnce(&mut Offers)) {
        let mut offers = self.0.lock().unwrap();
        change(&mut offers);
        let rejected = offers
            .closed
            .then(|| (offers.schema.take(), offers.batches.split_off(0)));
        let waker = offers.waker.take();
        drop(offers);
        drop(rejected);
        let _ = waker.map(Waker::wake);
    }

    pub(super) fn poll<T>(
        &self,
        cx: &Context<'_>,
        take: impl Fn(&mut Offers) -> Option<T>,
    ) -> Poll<T> {
        let mut offers = self.0.lock().unwrap();
        if let Some(taken) = take(&mut offers) {
            return Poll::Ready(taken);
        }
        offers.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The reading end of the source, for the producer. Dropping it closes the source.
pub(super) struct Reader(pub(super) Source);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.offer(|offers| offers.closed = true);
    }
}

impl Stream for Reader {
    type Item = Result<AsyncBatch, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll(cx, |offers| match offers.batches.pop_front() {
            Some(batch) => Some(Some(Ok(batch))),
            None => offers.ended.then_some(None),
        })
    }
}

#[derive(Default)]
pub(super) struct WakeFlag(pub(super) AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}
