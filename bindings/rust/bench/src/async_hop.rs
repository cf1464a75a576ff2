// SPDX-License-Identifier: Apache-2.0

//! Sends batches to another thread, with a window of 64: through the async interface, and through a
//! hand-written pair of threads. `PROGRAM NAME BATCHES` prints the nanoseconds per batch.

mod peer;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use fletching::{
    ArrowDeviceType, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray, SchemaBuilder,
};
use futures_lite::future::block_on;
use futures_lite::stream::{iter, StreamExt};

const WINDOW: usize = 64;

fn batch() -> DeviceArray {
    let mut array = DeviceArray::default();
    peer::produce(array.out());
    let mut raw = array.into_raw();
    raw.device_type = ArrowDeviceType::CPU;
    // SAFETY: the peer has filled the array, which owns nothing.
    unsafe { DeviceArray::from_raw(raw) }
}

fn through_fletching(batches: usize) {
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(WINDOW as u32));
    let producer = thread::spawn(move || {
        let schema = SchemaBuilder::new("l").build().expect("a schema");
        let content = iter(0..batches).map(|_| Ok(batch()));
        block_on(AsyncProducer::new(schema, ArrowDeviceType::CPU, content).send(handler))
    });
    block_on(async {
        let mut read = 0;
        while let Some(batch) = stream.next().await {
            drop(batch.expect("a batch"));
            read += 1;
        }
        assert_eq!(read, batches);
    });
    producer.join().expect("no panic").expect("all is sent");
}

/// The queue between the threads: at most a window of batches, and `None` for the end.
#[derive(Default)]
struct Pair {
    queue: Mutex<VecDeque<Option<DeviceArray>>>,
    has_room: Condvar,
    has_batch: Condvar,
}

impl Pair {
    fn push(&self, batch: Option<DeviceArray>) {
        let queue = self.queue.lock().expect("no panic");
        let full = |queue: &mut VecDeque<_>| queue.len() == WINDOW;
        let mut queue = self.has_room.wait_while(queue, full).expect("no panic");
        queue.push_back(batch);
        drop(queue);
        self.has_batch.notify_one();
    }

    fn pop(&self) -> Option<DeviceArray> {
        let queue = self.queue.lock().expect("no panic");
        let empty = |queue: &mut VecDeque<_>| queue.is_empty();
        let mut queue = self.has_batch.wait_while(queue, empty).expect("no panic");
        let batch = queue.pop_front().expect("there is one");
        drop(queue);
        self.has_room.notify_one();
        batch
    }
}

fn through_a_pair(batches: usize) {
    let pair = Arc::new(Pair::default());
    let ours = Arc::clone(&pair);
    let producer = thread::spawn(move || {
        (0..batches).for_each(|_| ours.push(Some(batch())));
        ours.push(None);
    });
    let mut read = 0;
    while let Some(batch) = pair.pop() {
        drop(batch);
        read += 1;
    }
    assert_eq!(read, batches);
    producer.join().expect("no panic");
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, batches] = &arguments[..] else {
        eprintln!("usage: fletching_bench_async_rust fletching|pair BATCHES");
        return ExitCode::from(2);
    };
    let run = match &name[..] {
        "fletching" => through_fletching,
        _ => through_a_pair,
    };
    let batches = batches.parse().expect("a number of batches");
    let start = Instant::now();
    run(batches);
    let nanoseconds = start.elapsed().as_nanos() as f64 / batches as f64;
    println!("{{\"ns\": {nanoseconds}}}");
    ExitCode::SUCCESS
}
