// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// --- Tasks ------------------------------------------------------------------------------------------

func TestRuleAsyncTaskNullAccepted(t *testing.T) {
	var live live
	p, h := started(t, live.batch(1), made(nil, disk()))
	p.request(2)
	h.run()
	expectCode(t, p.drop(), 0)
	expectNone(t, &live)
	expectCode(t, p.drop(), 0) // what is dropped is not made
	h.run()
	expectText(t, p.take(), "task, task, end, release")
}

func TestRuleAsyncTaskCleansUp(t *testing.T) {
	p, h := started(t, rowsOf(1), endless)
	p.request(1)
	h.run()
	task := p.oldest()
	out := peer.New[abi.ArrowDeviceArray](2)
	defer peer.Free(out)
	// The later calls are made through the same struct, and through another copy.
	copied := task
	for i, expected := range []int32{0, 22, 22} {
		code, _ := callbacks.CallArrowAsyncTaskExtractData(&task, &out[min(i, 1)])
		expectCode(t, code, syscall.Errno(expected))
	}
	code, _ := callbacks.CallArrowAsyncTaskExtractData(&task, nil)
	expectCode(t, code, syscall.EINVAL)
	if code, _ := callbacks.CallArrowAsyncTaskExtractData(&copied, &out[1]); code == 0 || !out[1].IsReleased() {
		t.Error("a task was extracted twice")
	}
	if rows := row(ImportDeviceArray(unsafe.Pointer(&out[0]))); rows != 1 {
		t.Error(rows)
	}
	if h.open != 0 {
		t.Error(h.open, "tasks are open")
	}
	// Two calls that have found the task at the same time.
	p, h = started(t, rowsOf(1), endless)
	p.request(1)
	h.run()
	first := p.oldest()
	second := first
	value, _ := callbacks.HandleValue(first.PrivateData)
	expectCode(t, value.(*asyncTask).ExtractData(&first, nil), 0)
	expectCode(t, value.(*asyncTask).ExtractData(&second, nil), syscall.EINVAL)
}

func TestRuleAsyncTaskFailureThenOnError(t *testing.T) {
	lost := made(nil, NewError(syscall.ENOMEM, "no memory for it", nil))
	p, h := started(t, lost, rowsOf(2), rowsOf(3))
	p.request(2)
	h.run()
	expectRows(t, []int64{p.extract()}, -12)
	p.request(1)
	h.run()
	p.drop()
	h.run()
	expectText(t, p.take(), "task, task, error 12 no memory for it, release")
	// Not when the stream is over.
	p, h = started(t, lost, rowsOf(2), rowsOf(3))
	p.request(3)
	h.run()
	expectRows(t, []int64{p.extract(), p.extract(), p.extract()}, -12, 2, 3)
	h.run()
	expectText(t, p.take(), "task, task, task, end, release")
}

func TestRuleAsyncTaskReturnsErrno(t *testing.T) {
	panicking := AsyncBatch{Make: func() (*DeviceArray, error) { panic("odd") }}
	for _, batch := range []AsyncBatch{made(nil, NewError(^syscall.Errno(6), "odd", nil)), panicking, made(nil, errors.New("odd"))} {
		p, h := started(t, batch, endless)
		p.request(1)
		h.run()
		expectRows(t, []int64{p.extract()}, -5)
	}
	p, h := started(t, made(nil, nil), endless)
	p.request(1)
	h.run()
	expectRows(t, []int64{p.extract()}, -22)
	h.run()
	expectText(t, p.take(), "task, error 22 batch: nil: expected an array, release")
}

func TestRuleAsyncTaskInOrder(t *testing.T) {
	p, h := started(t, counting(200)...)
	p.request(200)
	h.run()
	for rows := int64(1); rows <= 200; rows++ {
		expectRows(t, []int64{p.extract()}, rows)
	}
	h.run()
}

func TestRuleAsyncHandlerPrivateDataUntouched(t *testing.T) {
	p := newConsumerPeer(t)
	before := p.handlers[0].PrivateData
	sendTo(t, p, AsyncProducer{}, nil).run()
	if p.handlers[0].PrivateData != before {
		t.Error("changed")
	}
}

// --- Request and cancel -------------------------------------------------------------------------------

func TestRuleAsyncRequestInsideHandlers(t *testing.T) {
	p := newConsumerPeer(t)
	p.inside = func(name string) {
		if name == "schema" || name == "task" {
			p.request(1)
		}
	}
	sendTo(t, p, AsyncProducer{}, counting(3)).run()
	expectText(t, p.take(), "schema, task, task, task, end")
}

func TestRuleAsyncRequestNotSynchronous(t *testing.T) {
	p, h := started(t, counting(1)...)
	p.request(1)
	p.request(0)
	expectText(t, p.take(), "")
	h.run()
	expectText(t, p.take(), "error 22 request: n is not positive: expected 1 or more, got 0, release")
}

func TestRuleAsyncRequestScheduled(t *testing.T) {
	p, h := started(t, rowsOf(1), endless)
	select {
	case <-h.news:
	default:
	}
	p.request(1)
	h.wait() // it was woken
	h.run()
	expectText(t, p.take(), "task")
}

func TestRuleAsyncRequestAddsUp(t *testing.T) {
	p, h := started(t, counting(5)...)
	p.request(1)
	h.run()
	expectText(t, p.take(), "task")
	p.request(1)
	p.request(1)
	h.run()
	expectText(t, p.take(), "task, task")
	for range 3 {
		p.request(math.MaxInt64)
	}
	h.run()
	expectText(t, p.take(), "task, task, end")
}

func TestRuleAsyncRequestNotExceeded(t *testing.T) {
	p, h := started(t, counting(5)...)
	expectText(t, p.take(), "")
	p.request(3)
	h.run()
	expectText(t, p.take(), "task, task, task")
}

func TestRuleAsyncRequestRefusedWhenNotPositive(t *testing.T) {
	for _, n := range []int64{0, -1, math.MinInt64} {
		p, h := started(t, rowsOf(1), endless)
		p.request(n)
		h.run()
		expectText(t, p.take(), fmt.Sprintf("error 22 request: n is not positive: expected 1 or more, got %d, release", n))
	}
}

func TestRuleAsyncRequestErrorsThroughOnError(t *testing.T) {
	p, h := started(t) // not when the stream is over
	p.request(-1)
	h.run()
	expectText(t, p.take(), "end, release")
}

func TestRuleAsyncRequestNothingAfterCancel(t *testing.T) {
	p, h := started(t, counting(5)...)
	p.cancel()
	p.request(3)
	p.request(-3)
	h.run()
	expectText(t, p.take(), "release")
}

func TestRuleAsyncCancelStops(t *testing.T) {
	var live live
	p, h := started(t, live.batch(1), live.batch(2), live.batch(3))
	p.request(1)
	h.run()
	p.cancel()
	if h.run() {
		t.Error("released before the task was extracted")
	}
	p.drop()
	if !h.run() || h.result != nil {
		t.Error(h.result)
	}
	expectText(t, p.take(), "task, release")
	<-h.sourceEnd
	expectNone(t, &live)
}

func TestRuleAsyncCancelIdempotent(t *testing.T) {
	p, h := started(t, counting(5)...)
	p.cancel()
	p.cancel()
	h.run()
	p.cancel()
	h.run()
	expectText(t, p.take(), "release")
}

func TestRuleAsyncCancelThreadSafe(t *testing.T) {
	for range 50 {
		p, h := started(t, counting(20)...)
		p.inside = func(name string) {
			if name == "task" {
				p.drop()
			}
		}
		p.request(20)
		var wait sync.WaitGroup
		for range 3 {
			wait.Add(1)
			go func() { p.cancel(); wait.Done() }()
		}
		h.run()
		wait.Wait()
		if !h.run() {
			t.Error("not released")
		}
	}
}

func TestRuleAsyncCancelCallsNoHandler(t *testing.T) {
	p, _ := started(t, endless)
	p.cancel()
	expectText(t, p.take(), "")
}

func TestRuleAsyncCancelNoOnError(t *testing.T) {
	p, h := started(t, rowsOf(1), disk())
	p.cancel()
	p.request(9)
	h.run()
	expectText(t, p.take(), "release")
}

// --- Data -----------------------------------------------------------------------------------------------

func TestRuleAsyncProducerOneDeviceType(t *testing.T) {
	text := "error 22 batch: device_type differs from the stream's: expected cpu, got cuda (rule async-producer.one-device-type), release"
	var live live
	h := expectSent(t, "schema, "+text, AsyncProducer{}, onCUDA(live.batch(1)))
	<-h.sourceEnd
	expectNone(t, &live)
	p, h := started(t, made(onCUDA(live.batch(1)), nil), endless)
	p.request(1)
	h.run()
	expectRows(t, []int64{p.extract()}, -22)
	expectNone(t, &live)
	h.run()
	expectText(t, p.take(), "task, "+text)
}

func TestRuleAsyncNextSameSchema(t *testing.T) {
	record := (&SchemaBuilder{Format: "+s", Children: []SchemaBuilder{{Format: "i"}}})
	open := func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
		return must(record.Build()), func(yield func(AsyncBatch, error) bool) { yield(AsyncBatch{Array: rowsOf(1)}, nil) }, nil
	}
	expectSent(t, "schema, error 22 batch 0: expected 1 children, got 0 (rule async-next.same-schema), release",
		AsyncProducer{Open: open})
	closed := rowsOf(1)
	closed.Close()
	expectSent(t, "schema, error 22 batch: closed or moved: expected a live struct, release", AsyncProducer{}, closed)
	expectSent(t, "schema, error 22 batch: nil: expected an array, release", AsyncProducer{}, AsyncBatch{})
}

func TestRuleAsyncProducerMetadataEncoding(t *testing.T) {
	p := newConsumerPeer(t)
	pairs := Metadata{{"a", ""}, {"", "b"}}
	sendTo(t, p, AsyncProducer{Metadata: pairs}, items(endless))
	if !slices.Equal(must(metadataAt(p.object().AdditionalMetadata)), pairs) {
		t.Error("other metadata")
	}
	sendTo(t, p, AsyncProducer{}, items(endless))
	if p.object().AdditionalMetadata != 0 {
		t.Error("metadata without pairs")
	}
}

func TestRuleAsyncProducerMetadataLives(t *testing.T) {
	p := newConsumerPeer(t)
	p.inside = func(string) {
		if value, _ := must(metadataAt(p.object().AdditionalMetadata)).Get("key"); value != "value" {
			t.Error("the metadata is gone")
		}
	}
	sendTo(t, p, AsyncProducer{Metadata: Metadata{{"key", "value"}}}, nil).run()
	expectText(t, p.take(), "schema, end, release")
}

func TestRuleAsyncProducerOutlivesHandler(t *testing.T) {
	p := newConsumerPeer(t)
	p.inside = func(name string) {
		if name == "release" { // a consumer whose calls on other threads are late
			p.request(1)
			p.request(0)
			p.cancel()
		}
	}
	if err := Send(context.Background(), intSchema(), abi.DeviceCPU, func(func(*DeviceArray, error) bool) {}, p.handler()); err != nil {
		t.Error(err)
	}
	expectText(t, p.take(), "schema, end, release")
}

func TestRuleAsyncProducerFreedByProducer(t *testing.T) {
	var live live
	p := newConsumerPeer(t)
	h := sendTo(t, p, AsyncProducer{}, items(live.batch(1), live.batch(2)))
	h.run()
	handle := h.producer.PrivateData
	p.cancel()
	if _, lives := callbacks.HandleValue(handle); !lives {
		t.Error("freed before the release")
	}
	h.run()
	h.freed = true
	h.free()
	if _, lives := callbacks.HandleValue(handle); lives {
		t.Error("not freed")
	}
	expectNone(t, &live)
}
