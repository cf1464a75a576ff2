// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include <stdlib.h>
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// asyncStop is the reason why a stream stops. The first reason counts.
type asyncStop int

const (
	asyncRunning asyncStop = iota
	asyncByConsumer
	asyncByFailure
	asyncOver // the end was sent, or the consumer rejected something
)

// asyncStep is the effect of a step.
type asyncStep int

const (
	asyncCalls asyncStep = iota // one call of the handler
	asyncWaits
	asyncReleases
)

// asyncSending is a running producer. One goroutine calls the handler, another one reads the batches, and
// the consumer calls from any thread.
type asyncSending struct {
	producer *abi.ArrowAsyncProducer // in C memory
	handler  *abi.ArrowAsyncDeviceStreamHandler
	promise  asyncPromise
	types    *SchemaBuilder // the types of the schema
	number   int            // the number of the next batch; used by the reading goroutine
	news     chan struct{}  // signaled when there is work

	user      context.Context // the context of Send's caller
	source    context.Context // the context of the batches
	endSource context.CancelFunc
	sourceEnd chan struct{} // closed when the batches have ended
	taken     chan struct{} // signaled when the last offer is being sent; sending to it never blocks

	mutex     sync.Mutex
	stopped   asyncStop
	failure   error
	requested int64
	open      int        // tasks that are delivered and not extracted
	schema    *Schema    // read and not sent
	next      *asyncTask // read and not sent
	ended     bool       // there are no more batches

	// Used only by the calling goroutine.
	sent   int64
	over   bool // only the release remains
	task   abi.ArrowAsyncTask
	result error
}

// newAsyncSending sets the handler's producer, which is in one C allocation with its metadata.
func newAsyncSending(ctx context.Context, p AsyncProducer, handler unsafe.Pointer) *asyncSending {
	s := &asyncSending{
		handler: (*abi.ArrowAsyncDeviceStreamHandler)(handler), promise: asyncPromise{deviceType: p.DeviceType},
		news: make(chan struct{}, 1), taken: make(chan struct{}, 1), sourceEnd: make(chan struct{}), user: ctx,
	}
	s.source, s.endSource = context.WithCancel(ctx)
	metadata, err := encoded(p.Metadata)
	if p.DeviceType == 0 {
		err = brokenRule("async-producer.device-type-set", "Send: device_type: 0: expected the device type of the batches")
	}
	handle, ok := newHandle(s)
	if !ok {
		handle, err = spent, noMemory("Send")
	}
	if err != nil {
		s.stop(asyncByFailure, err)
	}
	size := unsafe.Sizeof(*s.producer)
	memory := C.malloc(C.size_t(size + uintptr(len(metadata))))
	s.producer = (*abi.ArrowAsyncProducer)(memory)
	*s.producer = abi.ArrowAsyncProducer{
		DeviceType: p.DeviceType, PrivateData: handle,
		Request: callbacks.ArrowAsyncProducerRequestStub(), Cancel: callbacks.ArrowAsyncProducerCancelStub(),
	}
	if len(metadata) > 0 {
		text := unsafe.Add(memory, size)
		copy(unsafe.Slice((*byte)(text), len(metadata)), metadata)
		s.producer.AdditionalMetadata = uintptr(text)
	}
	s.handler.Producer = uintptr(memory)
	return s
}

func encoded(metadata Metadata) ([]byte, error) {
	if len(metadata) == 0 {
		return nil, nil
	}
	return metadata.Encode()
}

// free stops the reading goroutine and frees the producer. The consumer must not use it any more.
func (s *asyncSending) free() {
	s.endSource()
	<-s.sourceEnd
	if s.producer.PrivateData != spent {
		callbacks.DeleteHandle(s.producer.PrivateData)
	}
	C.free(unsafe.Pointer(s.producer))
}

func (s *asyncSending) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// wait blocks until there is work. It stops the stream when the context is done. It returns false when only
// extractions by the consumer remain and the caller of Send must not be blocked any longer.
func (s *asyncSending) wait() bool {
	select {
	case <-s.news:
	case <-s.user.Done():
		s.stop(asyncByFailure, canceled("producer", s.user))
		if s.over {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			return s.open == 0
		}
	}
	return true
}

// run calls the handler until it is released, or until wait returns false.
func (s *asyncSending) run(wait func() bool) (released bool) {
	for {
		switch s.step() {
		case asyncReleases:
			s.free()
			return true
		case asyncWaits:
			if !wait() {
				return false
			}
		}
	}
}

// abandon passes the release of the handler to a goroutine that waits for the consumer's extractions.
func (s *asyncSending) abandon() error {
	err := s.result
	if err == nil {
		err = canceled("Send: the consumer has not extracted every batch", s.user)
	}
	go s.run(func() bool {
		<-s.news
		return true
	})
	return err
}

// --- The consumer's calls -------------------------------------------------------------------------

// stop has no effect on a stopped stream.
func (s *asyncSending) stop(reason asyncStop, err error) {
	s.mutex.Lock()
	if s.stopped == asyncRunning {
		s.stopped, s.failure = reason, err
	}
	s.mutex.Unlock()
	s.endSource()
	s.wake()
}

// Request increases the demand.
func (s *asyncSending) Request(_ *abi.ArrowAsyncProducer, n int64) {
	if n < 1 {
		s.stop(asyncByFailure, notPositive(n))
		return
	}
	s.mutex.Lock()
	s.requested = saturated(s.requested, n)
	s.mutex.Unlock()
	s.wake()
}

// Cancel stops the stream.
func (s *asyncSending) Cancel(*abi.ArrowAsyncProducer) { s.stop(asyncByConsumer, nil) }

// --- The handler's calls --------------------------------------------------------------------------

// step makes at most one call of the handler.
func (s *asyncSending) step() asyncStep {
	s.mutex.Lock()
	schema, next := s.schema, s.next
	switch {
	case s.over:
		waits := s.open > 0
		s.mutex.Unlock()
		if waits {
			return asyncWaits
		}
		callbacks.ReleaseArrowAsyncDeviceStreamHandler(s.handler)
		return asyncReleases
	case s.stopped != asyncRunning:
		s.mutex.Unlock()
		return s.sendStop()
	case schema != nil:
		s.schema = nil
		s.mutex.Unlock()
		s.taken <- struct{}{}
		return s.sendSchema(schema)
	case next != nil && s.requested > s.sent:
		s.next = nil
		s.open++
		s.mutex.Unlock()
		s.taken <- struct{}{}
		return s.sendBatch(next)
	case next == nil && s.ended:
		s.stopped = asyncOver
		s.mutex.Unlock()
		return s.sendEnd()
	}
	s.mutex.Unlock()
	return asyncWaits
}

func (s *asyncSending) sendSchema(schema *Schema) asyncStep {
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnSchema(s.handler, schema.get())
	schema.Close() // no effect if the consumer has moved it out
	return s.called("on_schema", code)
}

func (s *asyncSending) sendBatch(task *asyncTask) asyncStep {
	s.sent++
	handle, ok := newHandle(task)
	if !ok {
		task.close()
		s.stop(asyncByFailure, noMemory("producer: batch"))
		return asyncCalls
	}
	var metadata uintptr
	var pinner runtime.Pinner
	if len(task.metadata) > 0 {
		pinner.Pin(&task.metadata[0])
		metadata = uintptr(unsafe.Pointer(&task.metadata[0]))
	}
	s.task = abi.ArrowAsyncTask{ExtractData: callbacks.ArrowAsyncTaskExtractDataStub(), PrivateData: handle}
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(s.handler, &s.task, metadata)
	pinner.Unpin()
	if code != 0 {
		takeBack(handle)
	}
	return s.called("on_next_task", code)
}

func (s *asyncSending) sendEnd() asyncStep {
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(s.handler, nil, 0)
	s.called("on_next_task", code)
	s.finish()
	return asyncCalls
}

// sendStop drops the batches that were read and reports a failure.
func (s *asyncSending) sendStop() asyncStep {
	s.finish()
	if s.failure == nil {
		return s.step()
	}
	code := codeOf(s.failure)
	text := "producer: failed without a message"
	_ = guarded(func() error {
		if message := printable(s.failure.Error()); message != "" {
			text = message
		}
		return nil
	})
	message := C.CString(text)
	callbacks.CallArrowAsyncDeviceStreamHandlerOnError(s.handler, code, uintptr(unsafe.Pointer(message)), 0)
	C.free(unsafe.Pointer(message))
	s.result = s.failure
	return asyncCalls
}

// called handles the result of a handler call.
func (s *asyncSending) called(call string, code int32) asyncStep {
	if code == 0 {
		return asyncCalls
	}
	s.result = NewError(abi.SystemError(max(code, 0)), fmt.Sprintf("%s: refused by the consumer: expected 0, got %d", call, code), nil)
	s.mutex.Lock()
	s.stopped = asyncOver
	s.mutex.Unlock()
	s.finish()
	return asyncCalls
}

// finish stops the reading. Only the release remains.
func (s *asyncSending) finish() {
	s.over = true
	s.endSource()
	s.mutex.Lock()
	schema, next := s.schema, s.next
	s.schema, s.next = nil, nil
	s.mutex.Unlock()
	if schema != nil {
		schema.Close()
	}
	if next != nil {
		next.discard()
	}
}
