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

// The rules that a producer could break, with a consumer that writes down what is called.

func disk() error { return NewError(71, "disk", nil) }

func made(array *DeviceArray, err error) AsyncBatch {
	return AsyncBatch{Make: func() (*DeviceArray, error) { return array, err }}
}

// expectSent runs a whole stream, of which the peer extracts nothing.
func expectSent(t *testing.T, expected string, producer AsyncProducer, all ...any) *hand {
	t.Helper()
	p := newConsumerPeer(t)
	h := sendTo(t, p, producer, all)
	h.run()
	expectText(t, p.take(), expected)
	return h
}

func TestRuleAsyncHandlersSerialized(t *testing.T) {
	p, h := started(t, counting(2)...)
	p.inside = func(string) {
		done := make(chan struct{})
		go func() { p.request(2); close(done) }()
		<-done
	}
	p.request(1)
	h.run()
	p.inside = nil
	expectText(t, p.take(), "task, task, end")
}

func TestRuleAsyncNextNotConcurrent(t *testing.T) {
	p, h := started(t, counting(3)...)
	p.inside = func(name string) {
		if name == "task" {
			p.request(1)
			p.drop()
		}
	}
	p.request(1)
	h.run()
	expectText(t, p.take(), "task, task, task, end, release")
}

func TestRuleAsyncErrorEndsStream(t *testing.T) {
	p, h := started(t, rowsOf(1), disk())
	p.request(2)
	h.run()
	p.drop()
	h.run()
	expectText(t, p.take(), "task, error 71 disk, release")
	if codeOf(h.result) != 71 {
		t.Error(h.result)
	}
}

func TestRuleAsyncErrorThenReleaseOnly(t *testing.T) {
	p, h := started(t, rowsOf(1), disk())
	p.request(9)
	h.run()
	p.request(9)
	p.cancel()
	p.request(-1)
	p.drop()
	h.run()
	expectText(t, p.take(), "task, error 71 disk, release")
}

// refused is a stream of which the peer refuses a call.
func refused(t *testing.T, call string, code int32, all ...any) (*consumerPeer, *hand) {
	p := newConsumerPeer(t)
	p.refuses, p.code = call, code
	h := sendTo(t, p, AsyncProducer{}, all)
	p.request(5)
	h.run()
	return p, h
}

func TestRuleAsyncHandlerFailureEndsStream(t *testing.T) {
	for _, code := range []int32{int32(syscall.ENOMEM), -3} {
		var live live
		p, h := refused(t, "task", code, live.batch(1), live.batch(2))
		expectText(t, p.take(), "schema, task, release")
		<-h.sourceEnd
		expectNone(t, &live)
		expectText(t, h.result.Error(), fmt.Sprintf("on_next_task: refused by the consumer: expected 0, got %d", code))
		if found := codeOf(h.result); found != syscall.ENOMEM && (code > 0 || found != syscall.EIO) {
			t.Error(found)
		}
	}
}

func TestRuleAsyncSchemaOnlyReleaseAfterFailure(t *testing.T) {
	p, _ := refused(t, "schema", 22, rowsOf(1), disk())
	expectText(t, p.take(), "schema, release")
}

func TestRuleAsyncNextOnlyReleaseAfterFailure(t *testing.T) {
	p, _ := refused(t, "end", 22)
	expectText(t, p.take(), "schema, end, release")
}

func TestRuleAsyncSchemaFirstAndOnce(t *testing.T) {
	p, h := refused(t, "", 0, rowsOf(1))
	expectText(t, p.take(), "schema, task, end")
	p.drop()
	h.run()
	// A cancel may come instead.
	p = newConsumerPeer(t)
	h = sendTo(t, p, AsyncProducer{}, counting(1))
	p.cancel()
	h.run()
	expectText(t, p.take(), "release")
}

// without is a handler without a callback.
func without(t *testing.T, call, calls string, change func(handler *abi.ArrowAsyncDeviceStreamHandler)) {
	t.Helper()
	p := newConsumerPeer(t)
	change(&p.handlers[0])
	h := sendTo(t, p, AsyncProducer{}, counting(1))
	p.request(1)
	h.run()
	expectText(t, p.take(), calls)
	expectText(t, h.result.Error(), "handler."+call+": NULL: expected a callback")
}

func TestRuleAsyncSchemaSet(t *testing.T) {
	without(t, "on_schema", "release", func(handler *abi.ArrowAsyncDeviceStreamHandler) { handler.OnSchema = 0 })
}

func TestRuleAsyncNextSet(t *testing.T) {
	without(t, "on_next_task", "schema, release", func(handler *abi.ArrowAsyncDeviceStreamHandler) { handler.OnNextTask = 0 })
}

func TestRuleAsyncErrorSet(t *testing.T) {
	p := newConsumerPeer(t)
	p.handlers[0].OnError = 0
	sendTo(t, p, AsyncProducer{}, items(disk())).run()
	expectText(t, p.take(), "schema, release")
}

func TestRuleAsyncReleaseSet(t *testing.T) {
	p := newConsumerPeer(t)
	p.handlers[0].Release = 0
	if !sendTo(t, p, AsyncProducer{}, nil).run() {
		t.Error("it waits for a release that there is not")
	}
	expectText(t, p.take(), "schema, end")
}

func TestRuleAsyncNextNullTaskIsEnd(t *testing.T) {
	expectSent(t, "schema, end, release", AsyncProducer{})
	p, h := started(t, counting(1)...)
	p.request(1)
	h.run()
	expectText(t, p.take(), "task, end")
}

func TestRuleAsyncNextTaskLivesDuringCall(t *testing.T) {
	// The peer reads the metadata after the data was extracted.
	p, h := started(t, AsyncBatch{Array: rowsOf(1), Metadata: Metadata{{"key", "value"}}})
	p.inside = func(name string) {
		if name == "task" && p.extract() != 1 {
			t.Error("another batch")
		}
	}
	p.request(1)
	h.run()
	if len(p.metadata) != 1 || !slices.Equal(p.metadata[0], Metadata{{"key", "value"}}) {
		t.Error(p.metadata)
	}
}

func TestRuleAsyncNextMetadataEncoding(t *testing.T) {
	pairs := Metadata{{"a", ""}, {"", "b\x00c"}, {"a", "again"}}
	p, h := started(t, AsyncBatch{Array: rowsOf(1), Metadata: pairs}, rowsOf(2), endless)
	p.request(2)
	h.run()
	if len(p.metadata) != 2 || !slices.Equal(p.metadata[0], pairs) || p.metadata[1] != nil {
		t.Error(p.metadata)
	}
}

func TestRuleAsyncErrorMetadataEncoding(t *testing.T) {
	expectSent(t, "schema, error 71 disk, release", AsyncProducer{}, disk()) // the peer notes metadata
}

func TestRuleAsyncErrorErrnoCodes(t *testing.T) {
	expectSent(t, "schema, error 5 odd, release", AsyncProducer{}, NewError(^syscall.Errno(4), "odd", nil))
	expectSent(t, "schema, error 5 lost, release", AsyncProducer{}, errors.New("lost"))
	expectSent(t, "schema, error 12 lost: cannot allocate memory, release", AsyncProducer{},
		fmt.Errorf("lost: %w", syscall.ENOMEM))
}

// panics is an error whose text cannot be had.
type panics struct{}

func (panics) Error() string { panic("no text") }

func TestRuleAsyncErrorTextsLiveDuringCall(t *testing.T) {
	// The peer copies the text at the end of its call; an error without one has a text all the same.
	expectSent(t, "schema, error 5 producer: failed without a message, release", AsyncProducer{}, errors.New(""))
	expectSent(t, "schema, error 5 producer: failed without a message, release", AsyncProducer{}, panics{})
	expectSent(t, `schema, error 5 a\x00b\xff, release`, AsyncProducer{}, errors.New("a\x00b\xff"))
}

func TestRuleAsyncReleaseAlwaysCalled(t *testing.T) {
	expectSent(t, "schema, end, release", AsyncProducer{})
	expectSent(t, "schema, error 71 disk, release", AsyncProducer{}, disk())
	// Not before the last task is extracted, in any order.
	p, h := started(t, counting(2)...)
	p.request(2)
	h.run()
	expectText(t, p.take(), "task, task, end")
	slices.Reverse(p.tasks)
	for rows := int64(2); rows > 0; rows-- {
		if h.run() {
			t.Error("released before the last task was extracted")
		}
		if found := p.extract(); found != rows {
			t.Error(found)
		}
	}
	h.run()
	expectText(t, p.take(), "release")
}

func TestRuleAsyncReleaseLast(t *testing.T) {
	p, h := started(t)
	expectText(t, p.take(), "end, release")
	p.request(1)
	p.cancel()
	if h.run(); p.take() != "" {
		t.Error("a call after the release")
	}
}

func TestRuleAsyncHandlerProducerSetFirst(t *testing.T) {
	p := newConsumerPeer(t)
	producer := AsyncProducer{DeviceType: abi.DeviceCUDA, Metadata: Metadata{{"key", "value"}}}
	sendTo(t, p, producer, items(endless))
	object := p.object()
	metadata := must(metadataAt(object.AdditionalMetadata))
	if object.Request == 0 || object.Cancel == 0 || object.DeviceType != abi.DeviceCUDA || len(metadata) != 1 {
		t.Errorf("%+v %v", object, metadata)
	}
}

func TestRuleAsyncRequestSet(t *testing.T) {
	p, _ := started(t, endless)
	if p.object().Request == 0 {
		t.Error("NULL")
	}
}

func TestRuleAsyncCancelSet(t *testing.T) {
	p, _ := started(t, endless)
	if p.object().Cancel == 0 {
		t.Error("NULL")
	}
}

func TestRuleAsyncProducerDeviceTypeSet(t *testing.T) {
	p := newConsumerPeer(t)
	err := SendAsync(context.Background(), intSchema(), 0, nil, p.handler())
	text := "producer: device_type: 0: expected the device type of the batches (rule async-producer.device-type-set)"
	expectText(t, err.Error(), text)
	expectText(t, p.take(), "error 22 "+text+", release")
}

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
	expectSent(t, "schema, error 22 batch: children or dictionary differ from the stream's schema (rule async-next.same-schema), release",
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
	if err := SendAsync(context.Background(), intSchema(), abi.DeviceCPU, func(func(*DeviceArray, error) bool) {}, p.handler()); err != nil {
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
