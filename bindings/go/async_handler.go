// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "async.h"
import "C"

import (
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// The callbacks of a handler, which implement the cells of docs/reference/async.md.

// receive runs a handler call that may reject its argument.
func (c *asyncConsumer) receive(body func() error) int32 {
	c.users.Add(1)
	defer c.leave()
	err := invalid("handler call: overlaps another one: expected one call at a time")
	if c.calling.CompareAndSwap(false, true) {
		defer c.calling.Store(false)
		err = guarded(body)
	}
	if err == nil {
		return 0
	}
	c.end(asyncRefused, err)
	return codeOf(err)
}

// OnSchema takes or rejects the schema.
func (c *asyncConsumer) OnSchema(self *abi.ArrowAsyncDeviceStreamHandler, schema *abi.ArrowSchema) int32 {
	return c.receive(func() error { return c.receiveSchema(self.Producer, schema) })
}

// OnNextTask queues a task, or handles the end of the stream.
func (c *asyncConsumer) OnNextTask(_ *abi.ArrowAsyncDeviceStreamHandler, task *abi.ArrowAsyncTask, metadata uintptr) int32 {
	return c.receive(func() error {
		if task == nil {
			return c.receiveEnd()
		}
		return c.receiveTask(*task, metadata)
	})
}

// OnError ends the stream.
func (c *asyncConsumer) OnError(_ *abi.ArrowAsyncDeviceStreamHandler, code int32, message, _ uintptr) {
	c.users.Add(1)
	defer c.leave()
	c.end(asyncFailed, foreign(code, printableC(message)))
}

// Release releases the handler. A second call has no effect.
func (c *asyncConsumer) Release(*abi.ArrowAsyncDeviceStreamHandler) {
	if c.receiveRelease() {
		c.leave()
	}
}

func (c *asyncConsumer) receiveSchema(producer uintptr, raw *abi.ArrowSchema) error {
	state := c.current()
	if state != asyncCreated && state != asyncCancelledEarly {
		return invalid("on_schema: called twice: expected one call")
	}
	if raw == nil || raw.IsReleased() {
		return invalid("on_schema: schema is NULL or released: expected a schema")
	}
	object := (*abi.ArrowAsyncProducer)(abi.Pointer(producer))
	if object == nil || object.Request == 0 || object.Cancel == 0 {
		return invalid("handler.producer: NULL, or request or cancel NULL: expected callbacks")
	}
	metadata, err := metadataAt(object.AdditionalMetadata)
	if err != nil {
		return err
	}
	promise := asyncPromiseOf(raw, object.DeviceType)
	schema := newSchema(*raw) // moved back if the application rejects it
	if c.options.OnSchema != nil && state == asyncCreated {
		if err := guarded(func() error { return c.options.OnSchema(schema, metadata) }); err != nil {
			return giveBack(schema, raw, err)
		}
	}
	shared, err := schema.Share()
	if err != nil {
		return giveBack(schema, raw, err)
	}
	raw.Release = 0
	c.begin(object, promise, shared, metadata)
	c.wake()
	return nil
}

// giveBack returns the schema to the producer.
func giveBack(schema *Schema, raw *abi.ArrowSchema, err error) error {
	if slot := schema.leave(); slot != nil {
		slot.free()
		return err
	}
	raw.Release = 0 // the application has closed the lent schema
	return err
}

// begin sends the first request, or the cancel if the application has cancelled.
func (c *asyncConsumer) begin(object *abi.ArrowAsyncProducer, promise asyncPromise, shared *Shared[*Schema], metadata Metadata) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.producer = object
	if c.state != asyncCreated {
		c.state, c.demand = asyncCancelled, 0
		c.callCancel()
		c.unlocked(shared.Close)
		return
	}
	c.state, c.promise, c.schema, c.metadata = asyncStreaming, promise, shared, metadata
	if c.demand > 0 {
		c.callRequest(c.demand)
	}
}

func (c *asyncConsumer) receiveTask(task abi.ArrowAsyncTask, address uintptr) error {
	if task.ExtractData == 0 {
		return invalid("task.extract_data: NULL: expected a callback")
	}
	metadata, err := metadataAt(address)
	if err != nil {
		return err
	}
	if c.options.OnTask != nil && c.current() == asyncStreaming {
		if err := c.options.OnTask(metadata); err != nil {
			return err
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch c.state {
	case asyncStreaming, asyncCancelled, asyncBroken:
		if c.demand == 0 {
			return invalid("on_next_task: too many tasks: expected at most the sum of the requests")
		}
	default:
		return invalid("on_next_task: out of order: expected a call after on_schema and before the end")
	}
	c.demand--
	if c.state != asyncStreaming {
		c.drop(task)
		return nil
	}
	c.queue = append(c.queue, queuedTask{task, metadata})
	c.unlocked(c.wakeOne)
	return nil
}

func (c *asyncConsumer) receiveEnd() error {
	c.mutex.Lock()
	switch c.state {
	case asyncStreaming, asyncCancelled:
		c.state = asyncEnded
	case asyncBroken:
		c.state = asyncFailed
	default:
		c.mutex.Unlock()
		return invalid("on_next_task(NULL): out of order: expected one call after on_schema")
	}
	c.mutex.Unlock()
	c.wake()
	return nil
}

// end sets the error of the stream, unless the application already knows how the stream ended.
func (c *asyncConsumer) end(state asyncState, err error) {
	c.mutex.Lock()
	live := c.state.isLive()
	if live || c.state == asyncCancelledEarly || c.state == asyncCancelled || c.state == asyncBroken {
		c.state = state
	}
	if live {
		c.failure = err
		c.stop(false)
	}
	c.mutex.Unlock()
	if live {
		c.wake()
	}
}

// receiveRelease returns false if it was called before.
func (c *asyncConsumer) receiveRelease() bool {
	stream := C.uintptr_t(uintptr(unsafe.Pointer(c.handler)))
	tasks := int(C.fletching_async_here(stream, C.kFletchingToTask))
	producer := int(C.fletching_async_here(stream, C.kFletchingToProducer))
	c.mutex.Lock()
	before := c.state
	if before == asyncReleasing || before == asyncReleased {
		c.mutex.Unlock()
		return false
	}
	keep := before == asyncEnded && !c.shut
	c.shut, c.keeping = true, keep
	waits := tasks+producer == 0 && c.running != [2]int{}
	c.state = asyncReleased
	if waits {
		c.state = asyncReleasing
	}
	if before.isLive() {
		c.failure = errLostProducer
	}
	// A producer that is destroyed with its last task must not be destroyed during a call from another thread.
	for c.running[C.kFletchingToProducer] > producer {
		c.quiet.Wait()
	}
	c.settle()
	c.mutex.Unlock()
	if before.isLive() || keep {
		c.wake()
	}
	c.mutex.Lock()
	for waits && c.running != [2]int{} {
		c.quiet.Wait()
	}
	c.state = asyncReleased
	c.mutex.Unlock()
	return true
}

// dropQueue drops the queue except for reserved batches.
func (c *asyncConsumer) dropQueue() {
	for len(c.queue) > c.promised {
		c.drop(popAt(&c.queue, c.promised).task)
	}
}

// stop prevents further tasks from being taken, and drops the queue.
func (c *asyncConsumer) stop(cancel bool) {
	if c.shut {
		return
	}
	c.shut = true
	if cancel {
		c.callCancel()
	}
	c.dropQueue()
}

// settle extracts or drops the queued tasks.
func (c *asyncConsumer) settle() {
	for c.keeping && len(c.queue) > 0 {
		result, _ := c.extract(popFirst(&c.queue))
		if c.keeping {
			c.kept = append(c.kept, result)
		} else if result.batch != nil { // cancelled during the extraction
			c.unlocked(result.batch.Close)
		}
	}
	c.keeping = false
	c.dropQueue()
	for len(c.queue) > 0 { // reserved for a caller that this call is nested in
		result, _ := c.extract(popFirst(&c.queue))
		c.kept = append(c.kept, result)
	}
}

func (c *asyncConsumer) current() asyncState {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.state
}

var _ callbacks.ArrowAsyncDeviceStreamHandlerCallbacks = (*asyncConsumer)(nil)
