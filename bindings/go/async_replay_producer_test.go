// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// producerPlayer plays the source, the executor and the consumer of a producer.
type producerPlayer struct {
	replay
	sending  *asyncSending
	handlers []abi.ArrowAsyncDeviceStreamHandler
	stepping bool
	released bool
	offers   offers
	known    *trackedObject
	batches  []*trackedObject
	dropped  map[int]bool
	failing  map[int]bool // batches that are made during the extraction
	errno    syscall.Errno
	tasks    []abi.ArrowAsyncTask
	codes    []int
}

// offers holds the items of the source that its reader has not read.
type offers struct {
	sync.Mutex
	changed sync.Cond
	schema  *Schema
	batches []AsyncBatch
	ended   bool
	idle    bool // the reader waits
	closed  bool
}

func (o *offers) offer(change func()) {
	o.Lock()
	defer o.Unlock()
	change()
	o.idle = false
	o.changed.Broadcast()
	o.reject()
}

// reject releases the remaining items after close.
func (o *offers) reject() {
	if o.closed {
		if o.schema != nil {
			o.schema.Close()
		}
		for _, batch := range o.batches {
			if batch.Array != nil {
				batch.Array.Close()
			} else {
				_, _ = batch.Make()
			}
		}
		o.schema, o.batches = nil, nil
	}
}

func (o *offers) close() { o.offer(func() { o.closed = true }) }

// await must be called with the lock held.
func (o *offers) await(ready func() bool) bool {
	for !o.closed && !ready() {
		o.idle = true
		o.changed.Wait()
	}
	return !o.closed
}

func (p *producerPlayer) open(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
	context.AfterFunc(ctx, p.offers.close)
	o := &p.offers
	o.Lock()
	defer o.Unlock()
	if !o.await(func() bool { return o.schema != nil }) {
		return nil, nil, errors.New("closed")
	}
	schema := o.schema
	o.schema = nil
	return schema, func(yield func(AsyncBatch, error) bool) {
		for more := true; more; {
			o.Lock()
			more = o.await(func() bool { return len(o.batches) > 0 || o.ended }) && len(o.batches) > 0
			var batch AsyncBatch
			if more {
				batch = o.batches[0]
				o.batches = o.batches[1:]
			}
			o.Unlock()
			more = more && yield(batch, nil)
		}
	}, nil
}

// settle waits until the reader has read all available items.
func (p *producerPlayer) settle() {
	for settled := false; !settled; runtime.Gosched() {
		p.sending.mutex.Lock()
		settled = p.sending.stopped != asyncRunning || p.sending.schema != nil || p.sending.next != nil || p.sending.ended
		p.sending.mutex.Unlock()
		p.offers.Lock()
		settled = settled || p.offers.idle
		p.offers.Unlock()
	}
}

func playProducer(trace *trace) string {
	p := &producerPlayer{
		replay:   replay{trace: trace, counts: map[string]int{}},
		handlers: peer.New[abi.ArrowAsyncDeviceStreamHandler](1),
		dropped:  map[int]bool{}, failing: map[int]bool{},
	}
	p.offers.changed.L = &p.offers
	for _, step := range trace.Steps {
		if step.Event == "extract_fails" {
			p.failing[step.Task] = true
		}
	}
	p.handlers[0] = abi.ArrowAsyncDeviceStreamHandler{
		OnSchema:    callbacks.ArrowAsyncDeviceStreamHandlerOnSchemaStub(),
		OnNextTask:  callbacks.ArrowAsyncDeviceStreamHandlerOnNextTaskStub(),
		OnError:     callbacks.ArrowAsyncDeviceStreamHandlerOnErrorStub(),
		Release:     callbacks.ArrowAsyncDeviceStreamHandlerReleaseStub(),
		PrivateData: callbacks.NewHandle(p),
	}
	p.sending = newAsyncSending(context.Background(), AsyncProducer{DeviceType: abi.DeviceCPU}, unsafe.Pointer(&p.handlers[0]))
	p.sending.start(p.open)
	for step := p.next(); step != nil; step = p.next() {
		p.one(step)
	}
	if !p.released && !p.hasFailed() {
		p.fail("not released")
	}
	p.sending.free()
	p.offers.close()
	return p.compare()
}

func (p *producerPlayer) compare() string {
	var ours *Error
	if len(p.codes) > 0 && (!errors.As(p.sending.result, &ours) || int(ours.Code) != p.codes[0]) {
		p.fail("expected the result %d, got %v", p.codes[0], p.sending.result)
	}
	tasks := []string{}
	for _, batch := range p.batches {
		freed := "discarded"
		if p.dropped[batch.number] {
			freed = "dropped"
		}
		tasks = append(tasks, batch.outcome(freed))
	}
	schema := "none"
	if p.known != nil {
		schema = p.known.outcome("discarded")
	}
	problem := p.compareFinal(schema, tasks, p.codes)
	if problem == "" {
		callbacks.DeleteHandle(p.handlers[0].PrivateData)
		peer.Free(p.handlers)
	}
	return problem
}

func (p *producerPlayer) one(step *traceStep) {
	p.perform(step, func() int32 {
		if step.Beside == "" {
			return p.act(step)
		}
		results := make(chan int32)
		go func() { results <- p.act(step) }()
		return <-results
	})
}

func (p *producerPlayer) act(step *traceStep) int32 {
	object := p.sending.producer
	switch step.Event {
	case "schema_ready":
		p.known = &trackedObject{}
		schema := newSchema(p.known.schema())
		p.offers.offer(func() { p.offers.schema = schema })
	case "batch_ready":
		batch := p.batch()
		p.offers.offer(func() { p.offers.batches = append(p.offers.batches, batch) })
	case "end_reached":
		p.offers.offer(func() { p.offers.ended = true })
	case "failure":
		p.sending.stop(asyncByFailure, NewError(syscall.Errno(step.Errno), "the source has failed", nil))
	case "request", "request_invalid":
		callbacks.CallArrowAsyncProducerRequest(object, step.N)
	case "cancel":
		callbacks.CallArrowAsyncProducerCancel(object)
	case "step":
		if !p.stepping && !p.released {
			p.settle()
			p.stepping = true
			p.released = p.sending.step() == asyncReleases
			p.stepping = false
		}
	default:
		return p.extract(step)
	}
	return 0
}

func (p *producerPlayer) batch() AsyncBatch {
	batch := &trackedObject{number: len(p.batches)}
	p.batches = append(p.batches, batch)
	if !p.failing[batch.number] {
		return AsyncBatch{Array: newDeviceArray(batch.array(freedArray{batch}))}
	}
	return AsyncBatch{Make: func() (*DeviceArray, error) {
		if p.errno == 0 {
			batch.record("discarded")
			return nil, nil
		}
		batch.record("failed")
		return nil, NewError(p.errno, "the data cannot be had", nil)
	}}
}

func (p *producerPlayer) extract(step *traceStep) int32 {
	p.errno = syscall.Errno(step.Errno)
	array := peer.New[abi.ArrowDeviceArray](1)
	defer peer.Free(array)
	out := &array[0]
	if step.Event == "extract_drop" {
		p.dropped[step.Task] = true
		out = nil
	}
	code, called := callbacks.CallArrowAsyncTaskExtractData(&p.tasks[step.Task], out)
	if !called {
		p.fail("extract_data: NULL")
	}
	if (step.Event == "extract") == array[0].IsReleased() {
		p.fail("extract_data: an array and an error, or neither")
	}
	if !array[0].IsReleased() {
		value, _ := callbacks.DeleteHandle(array[0].Array.PrivateData)
		value.(freedArray).record("extracted")
		if value.(freedArray).number != step.Task {
			p.fail("extract_data: another batch")
		}
	}
	return code
}

// called plays the steps up to the return of the call.
func (p *producerPlayer) called(format string, values ...any) int32 {
	what := fmt.Sprintf(format, values...)
	p.happened("%s", what)
	for step := p.next(); step != nil; step = p.next() {
		if !slices.Contains([]string{"returns", "returns_ok", "returns_error"}, step.Event) {
			p.one(step)
			continue
		}
		p.perform(step, func() int32 { return 0 })
		return int32(step.Errno)
	}
	p.fail("%s never returns", what)
	return int32(syscall.EIO)
}

func (p *producerPlayer) OnSchema(_ *abi.ArrowAsyncDeviceStreamHandler, schema *abi.ArrowSchema) int32 {
	code := p.called("on_schema")
	if code == 0 {
		value, _ := callbacks.DeleteHandle(schema.PrivateData)
		value.(freedSchema).record("taken")
		schema.Release = 0
	}
	return code
}

func (p *producerPlayer) OnNextTask(_ *abi.ArrowAsyncDeviceStreamHandler, task *abi.ArrowAsyncTask, _ uintptr) int32 {
	if task == nil {
		return p.called("on_next_task")
	}
	p.tasks = append(p.tasks, *task)
	return p.called("on_next_task %d", len(p.tasks)-1)
}

func (p *producerPlayer) OnError(_ *abi.ArrowAsyncDeviceStreamHandler, code int32, message, _ uintptr) {
	if printableC(message) == "" {
		p.fail("on_error without a text")
	}
	p.codes = append(p.codes, int(code))
	p.called("on_error %d", code)
}

func (p *producerPlayer) Release(*abi.ArrowAsyncDeviceStreamHandler) { p.called("release") }

func TestReplayProducer(t *testing.T) { playAll(t, "producer", 246, playProducer) }
