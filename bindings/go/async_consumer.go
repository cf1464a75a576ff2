// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include <stdlib.h>
// #include "async.h"
import "C"

import (
	"context"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// asyncState is a state of the consumer; see docs/reference/async.md.
type asyncState int

const (
	asyncCreated asyncState = iota
	asyncCancelledEarly
	asyncStreaming
	asyncCancelled
	asyncEnded
	asyncBroken
	asyncFailed
	asyncRefused
	asyncReleasing
	asyncReleased
)

// isLive reports whether the application does not know yet how the stream ends.
func (s asyncState) isLive() bool { return s == asyncCreated || s == asyncStreaming }

// asyncConsumer is the state of an AsyncStream. The stream has a pointer to it, the handler has a handle.
type asyncConsumer struct {
	options AsyncOptions
	handler *abi.ArrowAsyncDeviceStreamHandler // in C memory, until the last user leaves
	given   unsafe.Pointer                     // the handler, or its wrapper, for the producer
	users   atomic.Int32                       // the stream, the handler until its release, and running handler calls
	calling atomic.Bool                        // a handler call is running
	made    []uintptr                          // the stack of NewAsyncStream if owners are traced
	woken   func()                             // called on every change, for the replay of traces

	mutex    sync.Mutex
	quiet    sync.Cond       // signaled when a call to the producer returns
	waiting  []chan struct{} // waiting calls, oldest first; each channel has capacity for one wake
	state    asyncState
	schema   *Shared[*Schema] // nil before the schema arrives
	metadata Metadata
	promise  asyncPromise
	producer *abi.ArrowAsyncProducer
	demand   int64 // before on_schema, the requested batches; afterwards, the batches that may still arrive
	owed     int64 // batches that were taken and not requested again
	queue    []queuedTask
	promised int        // queued tasks reserved for callers that request more before they take a task
	shut     bool       // no further task may be taken from the queue
	kept     []received // batches that the release extracted after the end of the stream
	keeping  bool       // true while the release extracts
	failure  error
	closed   bool   // by the application
	running  [2]int // running calls to tasks, and to the producer object
}

// queuedTask is a copy of the arguments of on_next_task.
type queuedTask struct {
	task     abi.ArrowAsyncTask
	metadata Metadata
}

// received is a batch, or the error of its extraction.
type received struct {
	batch    *DeviceArray
	metadata Metadata
	err      error
}

func newAsyncConsumer(options AsyncOptions) *asyncConsumer {
	if options.Window == 0 {
		options.Window = 16
	}
	c := &asyncConsumer{options: options, demand: max(int64(options.Window), 0), made: callers()}
	c.quiet.L = &c.mutex
	c.users.Store(1)
	return c
}

// wake wakes all waiting calls. The caller must not hold the lock.
func (c *asyncConsumer) wake() {
	c.mutex.Lock()
	for len(c.waiting) > 0 {
		c.wakeFirst()
	}
	c.mutex.Unlock()
	if c.woken != nil {
		c.woken()
	}
}

// wakeOne wakes one call, for one batch. The caller must not hold the lock.
func (c *asyncConsumer) wakeOne() {
	c.mutex.Lock()
	c.wakeFirst()
	c.mutex.Unlock()
	if c.woken != nil {
		c.woken()
	}
}

func (c *asyncConsumer) wakeFirst() {
	if len(c.waiting) > 0 {
		popFirst(&c.waiting) <- struct{}{}
	}
}

// wait unlocks until there is a change or the context is done, and returns with the lock.
func (c *asyncConsumer) wait(ctx context.Context) {
	news := make(chan struct{}, 1)
	c.waiting = append(c.waiting, news)
	c.mutex.Unlock()
	select {
	case <-news:
	case <-ctx.Done():
	}
	c.mutex.Lock()
	if at := slices.Index(c.waiting, news); at >= 0 {
		c.waiting = slices.Delete(c.waiting, at, at+1)
	}
}

// unlocked runs foreign code without the lock.
func (c *asyncConsumer) unlocked(body func()) {
	c.mutex.Unlock()
	defer c.mutex.Lock()
	body()
}

// --- Calls to the producer ------------------------------------------------------------------------
//
// All of them are called with the lock and return with it, but do not hold it during the call. A call that
// takes a task from the queue is counted under the same lock, so that the release finds the task in one
// of the two places.

func (c *asyncConsumer) out(kind int, call func(stream C.uintptr_t)) {
	c.running[kind]++
	c.mutex.Unlock()
	call(C.uintptr_t(uintptr(unsafe.Pointer(c.handler))))
	c.mutex.Lock()
	c.running[kind]--
	c.quiet.Broadcast()
}

// sendRequest has no effect unless the stream is streaming.
func (c *asyncConsumer) sendRequest(n int64) {
	if c.state == asyncStreaming {
		c.demand = saturated(c.demand, n)
		c.callRequest(n)
	}
}

func (c *asyncConsumer) callRequest(n int64) {
	c.out(C.kFletchingToProducer, func(stream C.uintptr_t) {
		C.fletching_async_request(stream, C.uintptr_t(c.producer.Request), C.uintptr_t(uintptr(unsafe.Pointer(c.producer))), C.int64_t(n))
	})
}

func (c *asyncConsumer) callCancel() {
	c.out(C.kFletchingToProducer, func(stream C.uintptr_t) {
		C.fletching_async_cancel(stream, C.uintptr_t(c.producer.Cancel), C.uintptr_t(uintptr(unsafe.Pointer(c.producer))))
	})
}

// extract returns the batch or an error, and whether the producer knows of the error.
func (c *asyncConsumer) extract(queued queuedTask) (result received, producerKnows bool) {
	slot := emptySlot(&deviceArrayKind)
	var code C.int
	c.out(C.kFletchingToTask, func(stream C.uintptr_t) {
		code = C.fletching_async_extract(stream, C.uintptr_t(queued.task.ExtractData), C.uintptr_t(queued.task.PrivateData),
			(*C.uint8_t)(unsafe.Pointer(slot.raw)))
	})
	if code != 0 { // a failed extraction leaves no struct to release
		slot.free()
		return received{err: foreign(int32(code), "extract_data: failed without a message")}, true
	}
	err := c.promise.check(slot.raw)
	batch := &DeviceArray{}
	batch.hold(slot)
	if err == nil {
		c.unlocked(func() { err = c.options.checkBatch(slot.raw, c.promise.deviceType) })
	}
	if err != nil {
		c.unlocked(batch.Close)
		return received{err: err}, false
	}
	return received{batch, queued.metadata, nil}, false
}

// drop extracts to NULL, or, since that terminates the process in arrow-go's producer, extracts and releases.
func (c *asyncConsumer) drop(task abi.ArrowAsyncTask) {
	c.out(C.kFletchingToTask, func(stream C.uintptr_t) {
		if c.options.DropWithNull {
			C.fletching_async_extract(stream, C.uintptr_t(task.ExtractData), C.uintptr_t(task.PrivateData), nil)
			return
		}
		slot := emptySlot(&deviceArrayKind)
		code := C.fletching_async_extract(stream, C.uintptr_t(task.ExtractData), C.uintptr_t(task.PrivateData),
			(*C.uint8_t)(unsafe.Pointer(slot.raw)))
		if code == 0 {
			slot.kind.release(slot.raw)
		}
		slot.free()
	})
}

// --- The application ------------------------------------------------------------------------------

func (c *asyncConsumer) request(n int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.state == asyncCreated {
		c.demand = saturated(c.demand, n)
	} else {
		c.sendRequest(n)
	}
}

// isQueued reports whether there is a task to take. It requests more batches before the task is taken,
// because libarrow's producer is destroyed with its last task, and half a window at a time, because a
// request costs as much as a batch. If the stream ends during the request, the caller still gets the task.
func (c *asyncConsumer) isQueued() bool {
	for !c.shut && len(c.queue) > 0 {
		if half := (c.options.Window + 1) / 2; half <= 0 || c.owed+1 < int64(half) {
			return true
		}
		more := c.owed + 1
		c.owed = -1
		c.promised++
		c.sendRequest(more)
		c.promised--
		if c.shut {
			return len(c.queue) > 0
		}
	}
	return false
}

func (c *asyncConsumer) next(ctx context.Context) (*DeviceArray, Metadata, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for {
		if ctx.Err() != nil {
			c.wakeFirst() // passes on a wake that arrived together with the end of the context
			return nil, nil, canceled("Next", ctx)
		}
		if c.isQueued() {
			c.owed++
			result, producerKnows := c.extract(popFirst(&c.queue))
			if result.err != nil {
				c.lose(result.err, producerKnows)
			}
			return result.batch, result.metadata, result.err
		}
		if len(c.kept) > 0 {
			result := popFirst(&c.kept)
			return result.batch, result.metadata, result.err
		}
		switch {
		case c.keeping:
		case c.failure != nil:
			return nil, nil, c.failure
		case !c.state.isLive():
			return nil, nil, io.EOF
		}
		c.wait(ctx)
	}
}

// lose ends a stream after a failed extraction. It cancels a producer that does not know of the failure,
// which would otherwise wait for the next request.
func (c *asyncConsumer) lose(err error, producerKnows bool) {
	if c.state == asyncStreaming {
		c.state = asyncBroken
		c.failure = err
		c.stop(!producerKnows)
		c.unlocked(c.wake)
	}
}

func (c *asyncConsumer) skip() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isQueued() {
		c.owed++
		c.drop(popFirst(&c.queue).task)
		return true
	}
	if len(c.kept) == 0 {
		return false
	}
	if batch := popFirst(&c.kept).batch; batch != nil {
		c.unlocked(batch.Close)
	}
	return true
}

func (c *asyncConsumer) waitSchema(ctx context.Context) (*Schema, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for {
		switch {
		case c.closed:
			return nil, closed("Schema")
		case c.schema != nil:
			return c.schema.View()
		case !c.state.isLive():
			return nil, c.failure
		case ctx.Err() != nil:
			return nil, canceled("Schema", ctx)
		}
		c.wait(ctx)
	}
}

// cancel drops the queue. Later calls return the reason, unless the stream has ended.
func (c *asyncConsumer) cancel(reason error) {
	c.mutex.Lock()
	before, kept := c.state, c.kept
	if before.isLive() || len(kept) > 0 || len(c.queue) > 0 || c.keeping {
		c.failure = reason
	}
	c.kept, c.keeping = nil, false
	switch before {
	case asyncCreated:
		c.state = asyncCancelledEarly
	case asyncStreaming:
		c.state = asyncCancelled
	}
	c.stop(before == asyncStreaming)
	c.mutex.Unlock()
	for _, result := range kept {
		discard(result.batch)
	}
	c.wake()
}

// --- Lifetime -------------------------------------------------------------------------------------

// expose creates the handler.
func (c *asyncConsumer) expose() unsafe.Pointer {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.handler == nil && !c.closed {
		handle, ok := newHandle(c)
		if !ok {
			c.unlocked(func() { c.cancel(noMemory("Handler")) })
			return nil
		}
		c.handler = (*abi.ArrowAsyncDeviceStreamHandler)(C.malloc(C.size_t(unsafe.Sizeof(*c.handler))))
		*c.handler = abi.ArrowAsyncDeviceStreamHandler{
			OnSchema:    callbacks.ArrowAsyncDeviceStreamHandlerOnSchemaStub(),
			OnNextTask:  callbacks.ArrowAsyncDeviceStreamHandlerOnNextTaskStub(),
			OnError:     callbacks.ArrowAsyncDeviceStreamHandlerOnErrorStub(),
			Release:     callbacks.ArrowAsyncDeviceStreamHandlerReleaseStub(),
			PrivateData: handle,
		}
		c.given = validated(directionImport, numberHandler, unsafe.Pointer(c.handler))
		c.users.Add(1)
	}
	if c.closed {
		return nil
	}
	return c.given
}

// leave frees the handler when its last user leaves.
func (c *asyncConsumer) leave() {
	if c.users.Add(-1) == 0 && c.handler != nil {
		callbacks.DeleteHandle(c.handler.PrivateData)
		C.free(unsafe.Pointer(c.handler))
	}
}

// close reports whether it was the first call.
func (c *asyncConsumer) close() bool {
	c.mutex.Lock()
	before := c.closed
	c.closed = true
	c.mutex.Unlock()
	if before {
		return false
	}
	c.cancel(closed("AsyncStream"))
	c.mutex.Lock()
	schema := c.schema
	c.schema = nil
	c.failure = closed("AsyncStream")
	c.mutex.Unlock()
	discard(schema)
	c.leave()
	return true
}

// collected closes a stream that became unreachable without a Close.
func (c *asyncConsumer) collected() {
	if c.close() {
		leaks.Add(1)
		reportLeak("async stream", c.made)
	}
}

func saturated(sum, n int64) int64 {
	if n > math.MaxInt64-sum {
		return math.MaxInt64
	}
	return sum + n
}

// errLostProducer is the error of a stream whose handler is released before the end.
var errLostProducer = NewError(syscall.EIO, "release: called too early: expected on_next_task(NULL) or on_error before", nil)
