// SPDX-License-Identifier: Apache-2.0

//! The rules of a producer's tasks, and of request and cancel.

use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use fletching::abi::ArrowAsyncTask as Task;
use fletching::{AsyncBatch, DeviceArray, Error};
use libc::{EINVAL, EIO, ENOMEM};

use crate::support::*;

use crate::producer_rules::{failing, start};

#[test]
fn rule_async_task_extract_set() {
    let (peer, mut sending) = start(batches(1));
    peer.request(1);
    sending.run();
    assert!(peer.tasks.lock().unwrap()[0].extract_data.is_some());
    peer.drop_task();
}

#[test]
fn rule_async_task_null_accepted() {
    let live = Live::default();
    let (peer, mut sending) = start(items([Ok(live.batch(1))]));
    peer.request(1);
    sending.run();
    assert_eq!(peer.drop_task(), 0);
    assert_eq!(live.count(), 0);
}

#[test]
fn rule_async_task_cleans_up() {
    let (peer, mut sending) = start(endless(1));
    peer.request(1);
    sending.run();
    let mut task = peer.tasks.lock().unwrap().pop_front().unwrap();
    let mut array = DeviceArray::default();
    // SAFETY: the second call is made through the same struct.
    unsafe {
        assert_eq!(Task::call_extract_data(&raw mut task, array.out()), Some(0));
        assert!(task.private_data.is_null());
        let mut again = DeviceArray::default();
        assert_eq!(
            Task::call_extract_data(&raw mut task, again.out()),
            Some(EINVAL)
        );
        assert!(again.is_released());
        assert_eq!(
            Task::call_extract_data(&raw mut task, null_mut()),
            Some(EINVAL)
        );
    }
    assert_eq!(array.length(), 1);
}

fn lost() -> Items {
    let made = || Err(Error::new(ENOMEM, "no memory for it"));
    items([
        Ok(AsyncBatch::made(made)),
        Ok(batch(2).into()),
        Ok(batch(3).into()),
    ])
}

#[test]
fn rule_async_task_failure_then_on_error() {
    let (peer, mut sending) = start(lost());
    peer.request(2);
    sending.run();
    assert_eq!(peer.extract(), -i64::from(ENOMEM));
    peer.request(1);
    sending.run();
    peer.drop_task();
    sending.run();
    assert_eq!(
        peer.calls(),
        "task, task, error 12 no memory for it, release"
    );
    // Not when the stream is over.
    let (peer, mut sending) = start(lost());
    peer.request(3);
    sending.run();
    assert_eq!(peer.extract(), -i64::from(ENOMEM));
    assert_eq!((peer.extract(), peer.extract()), (2, 3));
    sending.run();
    assert_eq!(peer.calls(), "task, task, task, end, release");
}

#[test]
fn rule_async_task_returns_errno() {
    let made = || Err(Error::new(-7, "odd"));
    let (peer, mut sending) = start(items([Ok(AsyncBatch::made(made))]));
    peer.request(1);
    sending.run();
    assert_eq!(peer.extract(), -i64::from(EIO));
}

#[test]
fn rule_async_task_in_order() {
    let (peer, mut sending) = start(batches(200));
    peer.request(200);
    sending.run();
    assert_eq!(
        (1..=200).map(|_| peer.extract()).collect::<Vec<_>>(),
        (1..=200).collect::<Vec<_>>()
    );
    assert!(sending.run().is_ready());
}

#[test]
fn rule_async_request_inside_handlers() {
    let peer = ConsumerPeer::new();
    *peer.inside.lock().unwrap() = Some(Box::new(|peer, _| peer.request(1)));
    let mut sending = Hand::new(producer(batches(3)).send(peer.owner()));
    sending.run();
    assert_eq!(peer.calls(), "schema, task, task, task, end");
    *peer.inside.lock().unwrap() = None;
    while !peer.tasks.lock().unwrap().is_empty() {
        peer.drop_task();
    }
    sending.run();
}

#[test]
fn rule_async_request_not_synchronous() {
    let (peer, mut sending) = start(batches(1));
    peer.request(1);
    assert_eq!(peer.calls(), "");
    peer.request(0);
    assert_eq!(peer.calls(), "");
    sending.run();
    assert_eq!(
        peer.calls(),
        "error 22 request: n is not positive: expected 1 or more, got 0, release"
    );
}

#[test]
fn rule_async_request_scheduled() {
    let (peer, mut sending) = start(endless(1));
    let before = sending.wakes.count.load(Ordering::SeqCst);
    peer.request(1);
    assert_eq!(sending.wakes.count.load(Ordering::SeqCst), before + 1);
    sending.run();
    assert_eq!(peer.calls(), "task");
    peer.drop_task();
}

#[test]
fn rule_async_request_adds_up() {
    let (peer, mut sending) = start(batches(5));
    for (n, calls) in [(1, "task"), (2, "task, task")] {
        peer.request(n);
        sending.run();
        assert_eq!(peer.calls(), calls);
    }
    for _ in 0..3 {
        peer.request(i64::MAX);
    }
    sending.run();
    assert_eq!(peer.calls(), "task, task, end");
    peer.drop_tasks();
}

#[test]
fn rule_async_request_not_exceeded() {
    let (peer, mut sending) = start(batches(5));
    sending.run();
    assert_eq!(peer.calls(), "");
    peer.request(3);
    sending.run();
    assert_eq!(peer.calls(), "task, task, task");
    peer.drop_tasks();
}

#[test]
fn rule_async_request_refused_when_not_positive() {
    for n in [0, -1, i64::MIN] {
        let (peer, mut sending) = start(endless(1));
        peer.request(n);
        sending.run();
        let text = format!("request: n is not positive: expected 1 or more, got {n}");
        assert_eq!(peer.calls(), format!("error 22 {text}, release"));
    }
}

#[test]
fn rule_async_request_errors_through_on_error() {
    let (peer, mut sending) = start(batches(0));
    sending.run();
    peer.request(-1);
    sending.run();
    assert_eq!(peer.calls(), "end, release");
}

#[test]
fn rule_async_request_nothing_after_cancel() {
    let (peer, mut sending) = start(batches(5));
    peer.cancel();
    peer.request(3);
    peer.request(-3);
    sending.run();
    assert_eq!(peer.calls(), "release");
}

#[test]
fn rule_async_cancel_stops() {
    let (peer, mut sending) = start(batches(5));
    peer.request(1);
    sending.run();
    peer.cancel();
    assert!(!sending.run().is_ready());
    peer.drop_task();
    assert!(sending.run().output.as_ref().unwrap().is_ok());
    assert_eq!(peer.calls(), "task, release");
}

#[test]
fn rule_async_cancel_idempotent() {
    let (peer, mut sending) = start(batches(5));
    peer.cancel();
    peer.cancel();
    sending.run();
    peer.cancel();
    sending.run();
    assert_eq!(peer.calls(), "release");
}

#[test]
fn rule_async_cancel_thread_safe() {
    let (peer, mut sending) = start(batches(50));
    *peer.inside.lock().unwrap() = Some(Box::new(|peer, name| {
        if name == "task" {
            peer.drop_task();
        }
    }));
    peer.request(50);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| peer.cancel());
        }
        sending.run();
    });
    sending.run();
    *peer.inside.lock().unwrap() = None;
    assert!(sending.is_ready());
    assert!(peer.calls().ends_with("release"));
}

#[test]
fn rule_async_cancel_calls_no_handler() {
    let (peer, _sending) = start(endless(0));
    peer.cancel();
    assert_eq!(peer.calls(), "");
}

#[test]
fn rule_async_cancel_no_on_error() {
    let (peer, mut sending) = start(failing());
    peer.cancel();
    peer.request(9);
    sending.run();
    assert_eq!(peer.calls(), "release");
}

#[test]
fn rule_async_handler_private_data_untouched() {
    let (peer, mut sending) = start(batches(1));
    peer.cancel();
    sending.run();
    // SAFETY: the handler is released.
    let private_data = unsafe { (*peer.handler.get()).private_data };
    assert_eq!(private_data.cast_const().cast(), Arc::as_ptr(&peer));
}
