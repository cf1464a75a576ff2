// SPDX-License-Identifier: Apache-2.0

//! Allocation counts, and failing allocations. Counts are per thread, and each test has a thread. A
//! fence follows each allocation, and a write into it aborts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

use fletching::abi::{ArrowArray, ArrowDeviceType};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, DeviceArray, Node, SchemaBuilder,
};

struct CountingAllocator;

thread_local! {
    static MADE: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// Allocations of at least this many bytes fail.
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Miri detects such writes itself, and does not allow an allocator to read beyond an allocation.
const FENCE_SIZE: usize = if cfg!(miri) { 0 } else { 64 };
const FENCE: [u8; FENCE_SIZE] = [0xA5; FENCE_SIZE];

fn fenced(layout: Layout) -> Layout {
    Layout::from_size_align(layout.size() + FENCE.len(), layout.align()).unwrap()
}

// SAFETY: returns memory of the system allocator, or NULL.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LIMIT.get() {
            return ptr::null_mut();
        }
        MADE.set(MADE.get() + 1);
        LIVE.set(LIVE.get() + 1);
        // SAFETY: the caller guarantees that the layout is valid; the fence is behind it.
        unsafe {
            let memory = System.alloc(fenced(layout));
            if !memory.is_null() {
                memory
                    .add(layout.size())
                    .cast::<[u8; FENCE_SIZE]>()
                    .write(FENCE);
            }
            memory
        }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - 1);
        // SAFETY: the caller guarantees both.
        unsafe {
            if memory.add(layout.size()).cast::<[u8; FENCE_SIZE]>().read() != FENCE {
                std::process::abort();
            }
            System.dealloc(memory, fenced(layout));
        }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn made<T>(body: impl FnOnce() -> T) -> (usize, T) {
    let before = MADE.get();
    let value = body();
    (MADE.get() - before, value)
}

fn batch(columns: usize) -> Result<DeviceArray, fletching::Error> {
    let capacity = ArrayCapacity {
        arrays: columns,
        buffers: 1 + 2 * columns,
    };
    let mut builder = ArrayBuilder::new(capacity, [0_u64; 4])?;
    builder.set(Node::ROOT, ArrayValues::of(1), &[ptr::null()]);
    let first = builder.add_children(Node::ROOT, columns);
    for index in 0..columns {
        builder.set(first.sibling(index), ArrayValues::of(1), &[ptr::null(); 2]);
    }
    builder.finish_on(ArrowDeviceType::CUDA, 0)
}

#[test]
fn build_batch_allocates_once() {
    let live = LIVE.get();
    let (allocations, batch) = made(|| batch(1000).unwrap());
    assert_eq!(allocations, 1);
    assert_eq!(LIVE.get(), live + 1);
    drop(batch);
    assert_eq!(LIVE.get(), live);
}

/// The allocation has the object, three words for the block, and a struct with its pointer and
/// buffers for each array.
#[test]
fn build_batch_allocates_exact_size() {
    for columns in [0, 1, 1000] {
        let structs = (1 + columns) * (size_of::<ArrowArray>() + size_of::<*mut ArrowArray>());
        let addresses = (1 + 2 * columns) * size_of::<*const u8>();
        let needed = size_of::<[u64; 4]>() + 4 * size_of::<usize>() + structs + addresses;
        LIMIT.set(needed + 1);
        let all = batch(columns);
        LIMIT.set(usize::MAX);
        assert_eq!(all.unwrap().children().len(), columns);
    }
}

#[test]
fn take_child_does_not_allocate() {
    let mut batch = batch(2).unwrap();
    assert_eq!(made(|| batch.take_child(0).unwrap()).0, 0);
}

#[test]
fn array_from_vec_allocates_once() {
    let live = LIVE.get();
    let values = vec![1_i32, 2];
    let (allocations, array) = made(|| Array::from(values));
    assert_eq!(allocations, 1);
    drop(array);
    assert_eq!(LIVE.get(), live);
}

#[test]
fn view_allocates_once() {
    let shared = batch(100).unwrap().share().unwrap();
    let live = LIVE.get();
    let structs = 100 * (size_of::<ArrowArray>() + size_of::<*mut ArrowArray>());
    LIMIT.set(structs + 10 * size_of::<usize>()); // less than another struct
    let (allocations, view) = made(|| shared.view());
    LIMIT.set(usize::MAX);
    let view = view.unwrap();
    assert_eq!(allocations, 1);
    drop(view);
    assert_eq!(LIVE.get(), live);
}

/// The strings of a schema are allocated separately.
#[test]
fn dropped_schema_frees_all_memory() {
    let live = LIVE.get();
    let child = SchemaBuilder::new("i").name("n").metadata("k", "v");
    let schema = SchemaBuilder::new("+s").child(child).build().unwrap();
    assert!(LIVE.get() > live);
    drop(schema);
    assert_eq!(LIVE.get(), live);
}

/// Includes batches that are sent in the memory of earlier batches.
#[cfg(feature = "async")]
#[test]
fn async_send_frees_all_memory() {
    use std::future::Future;
    use std::pin::{pin, Pin};
    use std::task::{Context, Poll, Waker};

    use fletching::{encode_metadata, AsyncBatch, AsyncOptions, AsyncProducer, AsyncStream};
    use futures_core::Stream;

    struct Batches(usize);
    impl Stream for Batches {
        type Item = Result<AsyncBatch, fletching::Error>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.0 -= 1;
            let metadata = encode_metadata([(&b"key"[..], &b"value"[..])]).unwrap();
            let batch = || AsyncBatch::from(DeviceArray::from(Array::from(vec![1_i32])));
            Poll::Ready((self.0 > 0).then(|| Ok(batch().with_metadata(metadata))))
        }
    }
    let live = LIVE.get();
    {
        let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(2));
        let schema = SchemaBuilder::new("i").build().unwrap();
        let producer = AsyncProducer::new(schema, ArrowDeviceType::CPU, Batches(101));
        let mut sending = pin!(producer.send(handler));
        let mut batches = 0;
        let mut context = Context::from_waker(Waker::noop());
        while sending.as_mut().poll(&mut context).is_pending() {
            while let Poll::Ready(Some(batch)) = Pin::new(&mut stream).poll_next(&mut context) {
                assert_eq!(batch.unwrap().length(), 1);
                batches += 1;
            }
        }
        assert_eq!(batches, 100);
    }
    assert_eq!(LIVE.get(), live);
}

#[test]
fn out_of_memory_returns_enomem() {
    let failing = |body: &mut dyn FnMut() -> i32| {
        LIMIT.set(1 << 16);
        let code = body();
        LIMIT.set(usize::MAX);
        code
    };
    let shared = batch(2000).unwrap().share().unwrap();
    let live = LIVE.get();
    let code = failing(&mut || batch(2000).unwrap_err().code());
    assert_eq!(code, libc::ENOMEM);
    assert_eq!(LIVE.get(), live);
    let code = failing(&mut || shared.view().unwrap_err().code());
    assert_eq!(code, libc::ENOMEM);
    assert_eq!(LIVE.get(), live);
}
