// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
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
		if found := codeOf(h.result); found != abi.ENOMEM && (code > 0 || found != abi.EIO) {
			t.Error(found)
		}
	}
}

func TestAnEndThatIsRefused(t *testing.T) {
	p, h := refused(t, "end", int32(syscall.ENOSPC))
	expectText(t, p.take(), "schema, end, release")
	if h.result == nil || h.result.Error() != "on_next_task: refused by the consumer: expected 0, got 28" {
		t.Error(h.result)
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

// without sends to a handler without a callback, which is released and gets no other call.
func without(t *testing.T, name, calls string, change func(handler *abi.ArrowAsyncDeviceStreamHandler)) {
	t.Helper()
	p := newConsumerPeer(t)
	change(&p.handlers[0])
	err := AsyncProducer{DeviceType: abi.DeviceCPU, Open: func(context.Context) (*Schema, seqOfBatches, error) {
		t.Error("Open was called")
		return nil, nil, disk()
	}}.Send(context.Background(), p.handler())
	expectText(t, p.take(), calls)
	expectText(t, fmt.Sprint(err), "handler."+name+": NULL: expected a callback")
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("expected EINVAL, got %v", err)
	}
}

func TestRuleAsyncSchemaSet(t *testing.T) {
	without(t, "on_schema", "release", func(handler *abi.ArrowAsyncDeviceStreamHandler) { handler.OnSchema = 0 })
}

func TestRuleAsyncNextSet(t *testing.T) {
	without(t, "on_next_task", "release", func(handler *abi.ArrowAsyncDeviceStreamHandler) { handler.OnNextTask = 0 })
}

func TestRuleAsyncErrorSet(t *testing.T) {
	without(t, "on_error", "release", func(handler *abi.ArrowAsyncDeviceStreamHandler) { handler.OnError = 0 })
}

func TestRuleAsyncReleaseSet(t *testing.T) {
	without(t, "release", "", func(handler *abi.ArrowAsyncDeviceStreamHandler) { handler.Release = 0 })
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
	schema := intSchema()
	err := Send(context.Background(), schema, 0, nil, p.handler())
	text := "producer: device_type: 0: expected the device type of the batches (rule async-producer.device-type-set)"
	expectText(t, err.Error(), text)
	expectText(t, p.take(), "error 22 "+text+", release")
	if !schema.IsReleased() {
		t.Error("a schema that was not sent is kept")
	}
}
