// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// The rules that a consumer could break, with a producer that makes its calls one by one.

const lost = "release: called too early: expected on_next_task(NULL) or on_error before"

func TestRuleAsyncAnyThread(t *testing.T) {
	p, stream := opened(t, 4)
	for rows := range 3 {
		var wait sync.WaitGroup
		wait.Add(1)
		go func() { expectCode(t, p.task(rows+1), 0); wait.Done() }()
		wait.Wait()
	}
	expectCode(t, p.end(), 0)
	expectRows(t, allRows(stream), 1, 2, 3, 0)
	p.release()
}

func TestRuleAsyncSchemaReturnsErrno(t *testing.T) {
	p, stream := created(t, AsyncOptions{})
	expectCode(t, p.schema(&Schema{}), syscall.EINVAL)
	expectText(t, failure(t, stream).Message, "on_schema: schema is NULL or released: expected a schema")
	p.release()
	// The second of two schemas is refused, and ends the stream.
	p, stream = opened(t, 1)
	expectCode(t, p.schema(intSchema()), syscall.EINVAL)
	expectText(t, failure(t, stream).Message, "on_schema: called twice: expected one call")
	p.release()
	// So is what the application refuses; a panic is EIO.
	for _, refuse := range []func() error{
		func() error { return NewError(7, "no", nil) }, func() error { panic("no") }, func() error { return NewError(0, "no", nil) },
	} {
		p, stream = created(t, AsyncOptions{OnSchema: func(schema *Schema, _ Metadata) error {
			expectText(t, schema.Format(), "i")
			return refuse()
		}})
		code := p.schema(intSchema())
		if err := failure(t, stream); !strings.HasSuffix(err.Error(), "no") || int32(err.Code) != code || code != 7 && code != 5 {
			t.Error(code, err)
		}
		p.release()
	}
}

func TestRuleAsyncSchemaMovedOrReleased(t *testing.T) {
	for _, how := range []string{"kept", "cancelled", "closed by the application", "refused"} {
		var live live
		live.Add(1)
		p, stream := created(t, AsyncOptions{OnSchema: func(schema *Schema, _ Metadata) error {
			switch how {
			case "closed by the application":
				schema.Close()
			case "refused":
				return syscall.ENOMEM
			}
			return nil
		}})
		schema := intSchema()
		if err := schema.Attach(&live); err != nil {
			t.Fatal(err)
		}
		raw := peer.New[abi.ArrowSchema](1)
		if err := schema.Export(unsafe.Pointer(&raw[0])); err != nil {
			t.Fatal(err)
		}
		if how == "cancelled" {
			stream.Close()
		}
		code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnSchema(p.handler, &raw[0])
		if raw[0].IsReleased() != (how != "refused") || (code == 0) != (how == "kept" || how == "cancelled") {
			t.Errorf("%s: returned %d", how, code)
		}
		callbacks.ReleaseArrowSchema(&raw[0])
		peer.Free(raw)
		if left := live.Load(); (left == 1) != (how == "kept") {
			t.Errorf("%s: %d left", how, left)
		}
		stream.Close()
		p.release()
		expectNone(t, &live)
	}
}

func TestRuleAsyncSchemaReleasedIndependently(t *testing.T) {
	p, stream := opened(t, 1)
	p.fail(5, "")
	p.release()
	schema := must(stream.Schema(context.Background()))
	stream.Close()
	expectText(t, schema.Format(), "i")
	schema.Close()
	if _, err := stream.Schema(context.Background()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestRuleAsyncSchemaPointerNotKept(t *testing.T) {
	p, stream := opened(t, 1) // the peer overwrites the struct
	schema := must(stream.Schema(context.Background()))
	expectText(t, schema.Format(), "i")
	schema.Close()
	p.release()
}

func TestRuleAsyncNextReturnsErrno(t *testing.T) {
	p, stream := opened(t, 1)
	expectCode(t, p.task(1), 0)
	expectCode(t, p.task(2), syscall.EINVAL)
	expectText(t, failure(t, stream).Message, "on_next_task: too many tasks: expected at most the sum of the requests")
	expectCode(t, p.end(), syscall.EINVAL)
	expectCode(t, p.task(3), syscall.EINVAL)
	expectText(t, p.take(), "request 1, drop 1")
	p.release()
}

func TestRuleAsyncNextNullTaskAccepted(t *testing.T) {
	p, stream := opened(t, 1)
	expectCode(t, p.end(), 0)
	expectRows(t, allRows(stream), 0)
	p.release()
}

func TestRuleAsyncNextTaskCopied(t *testing.T) {
	p, stream := opened(t, 2) // the peer overwrites its struct after each call
	p.task(1)
	p.task(2)
	p.end()
	expectRows(t, allRows(stream), 1, 2, 0)
	p.release()
}

func TestRuleAsyncNextMetadataCopied(t *testing.T) {
	p, stream := opened(t, 2)
	p.give(&givenTask{number: 1, batch: rowsOf(1)}, must(Metadata{{"key", "value"}}.Encode()))
	batch, metadata, err := stream.Next(context.Background())
	if value, _ := metadata.Get("key"); row(batch, err) != 1 || value != "value" {
		t.Error(metadata, err)
	}
	// Malformed metadata is refused.
	code := p.give(&givenTask{number: 2, batch: rowsOf(2)}, []byte{0xff, 0xff, 0xff, 0xff})
	expectCode(t, code, syscall.EINVAL)
	expectText(t, failure(t, stream).Message, "metadata: number of pairs at byte 0: negative: expected 0 or more, got -1")
	p.release()
}

func TestRuleAsyncErrorTextsCopied(t *testing.T) {
	p, stream := opened(t, 1)
	p.fail(71, "lost")
	if err := failure(t, stream); err.Code != 71 || err.Message != "lost" {
		t.Error(err)
	}
	p.release()
}

func TestRuleAsyncErrorTextsNullAccepted(t *testing.T) {
	for code, expected := range map[int32]Error{71: {Code: 71}, 0: {syscall.EIO, "(code 0)", nil}, -9: {syscall.EIO, "(code -9)", nil}} {
		p, stream := opened(t, 1)
		p.fail(code, "")
		if err := failure(t, stream); *err != expected {
			t.Error(err)
		}
		p.release()
	}
}

func TestRuleAsyncErrorBeforeRequestAccepted(t *testing.T) {
	p, stream := created(t, AsyncOptions{Window: -1})
	p.fail(71, "gone")
	if _, err := stream.Schema(context.Background()); err == nil || err.Error() != "gone" {
		t.Error(err)
	}
	expectRows(t, allRows(stream), -71)
	p.release()
}

func TestRuleAsyncErrorCallsNoProducer(t *testing.T) {
	p, stream := opened(t, 2)
	p.task(1)
	p.fail(71, "")
	if err := stream.Request(3); err != nil || stream.Skip() {
		t.Error(err)
	}
	expectRows(t, allRows(stream), -71)
	stream.Close()
	expectText(t, p.take(), "request 2, drop 1")
	p.release()
}

func TestRuleAsyncReleaseBeforeRequestAccepted(t *testing.T) {
	p, stream := created(t, AsyncOptions{})
	p.release()
	if err := failure(t, stream); err.Code != syscall.EIO || err.Message != lost {
		t.Error(err)
	}
}

func TestRuleAsyncReleaseCallsNoProducer(t *testing.T) {
	p, stream := opened(t, 3)
	p.task(1)
	p.release()
	_ = stream.Request(3)
	expectRows(t, allRows(stream), -5)
	stream.Close()
	expectText(t, p.take(), "request 3, drop 1")
}

func TestRuleAsyncReleaseLikeArray(t *testing.T) {
	// The handler is freed when it is released and the stream is closed, in any order.
	for _, closeFirst := range []bool{false, true} {
		p, stream := opened(t, 1)
		handle, core := p.handler.PrivateData, stream.core
		if closeFirst {
			stream.Close()
		} else {
			p.release()
			p.release() // which does no harm while the stream is there
		}
		if _, lives := callbacks.HandleValue(handle); !lives || core.users.Load() != 1 {
			t.Error("freed too early")
		}
		if closeFirst {
			p.release()
		} else {
			stream.Close()
		}
		if _, lives := callbacks.HandleValue(handle); lives || core.users.Load() != 0 || stream.Handler() != nil {
			t.Error("not freed")
		}
	}
}

func TestRuleAsyncHandlerReadyWhenPassed(t *testing.T) {
	p, stream := created(t, AsyncOptions{})
	if p.handler.OnSchema == 0 || p.handler.OnNextTask == 0 || p.handler.OnError == 0 || p.handler.Release == 0 {
		t.Errorf("%+v", p.handler)
	}
	if stream.Handler() != unsafe.Pointer(p.handler) {
		t.Error("the address has changed")
	}
	p.release()
}

func TestRuleAsyncHandlerProducerNotBeforeSchema(t *testing.T) {
	p, stream := created(t, AsyncOptions{Window: 5})
	_ = stream.Request(2)
	stream.Close()
	expectText(t, p.take(), "")
	expectCode(t, p.schema(intSchema()), 0)
	expectCode(t, p.task(1), syscall.EINVAL) // it was never requested
	expectText(t, p.take(), "cancel")
	p.release()
	// An object that is not complete is refused.
	for _, change := range []func(p *producerPeer){
		func(p *producerPeer) { p.objects[0].Cancel = 0 },
		func(p *producerPeer) { p.objects[0].Request = 0 },
		func(p *producerPeer) { p.handler.Producer = 0 },
	} {
		p, stream = created(t, AsyncOptions{})
		change(p)
		expectCode(t, p.schema(intSchema()), syscall.EINVAL)
		expectText(t, failure(t, stream).Message, "handler.producer: NULL, or request or cancel NULL: expected callbacks")
		p.release()
	}
}

func TestAsyncMetadataOfTheStream(t *testing.T) {
	p, stream := created(t, AsyncOptions{})
	block := peer.New[byte](100)
	defer peer.Free(block)
	copy(block, must(Metadata{{"key", "value"}}.Encode()))
	p.objects[0].AdditionalMetadata = addressOf(block)
	expectCode(t, p.schema(intSchema()), 0)
	if value, _ := stream.Metadata().Get("key"); value != "value" || stream.DeviceType() != abi.DeviceCPU {
		t.Error(stream.Metadata(), stream.DeviceType())
	}
	p.release()
	p, stream = created(t, AsyncOptions{})
	for i := range block {
		block[i] = 0xff
	}
	p.objects[0].AdditionalMetadata = addressOf(block)
	expectCode(t, p.schema(intSchema()), syscall.EINVAL)
	failure(t, stream)
	p.release()
}

// --- Tasks and requests -----------------------------------------------------------------------------

func TestRuleAsyncTaskExtractedOnce(t *testing.T) {
	// Taken, skipped, and dropped by a cancel before and after they arrive.
	p, stream := opened(t, 4)
	p.task(1)
	p.task(2)
	expectRows(t, []int64{nextRow(stream)}, 1)
	if !stream.Skip() {
		t.Error("nothing to skip")
	}
	expectText(t, p.take(), "request 4, extract 1, request 2, drop 2")
	p.task(3)
	stream.Close()
	p.task(4)
	expectText(t, p.take(), "cancel, drop 3, drop 4")
	p.release()
}

func TestRuleAsyncTaskNullDrops(t *testing.T) {
	p, stream := opened(t, 9)
	p.task(1)
	if !stream.Skip() || stream.Skip() {
		t.Error("expected one to skip")
	}
	expectText(t, p.take(), "request 9, drop 1")
	p.end()
	p.release()
}

func TestRuleAsyncTaskArrayReleasedSeparately(t *testing.T) {
	var live live
	p, stream := opened(t, 9)
	for rows := 1; rows <= 3; rows++ {
		p.give(&givenTask{number: rows, batch: live.batch(rows)}, nil)
	}
	first, _, err := stream.Next(context.Background())
	p.end()
	// What is queued is extracted in the release of a stream that has ended.
	p.release()
	expectText(t, p.take(), "request 9, extract 1, extract 2, extract 3")
	second, _, err2 := stream.Next(context.Background())
	if !stream.Skip() || stream.Skip() {
		t.Error("what is kept can be skipped")
	}
	expectRows(t, []int64{live.Load(), nextRow(stream)}, 2, 0)
	stream.Close()
	expectRows(t, []int64{row(first, err), row(second, err2)}, 1, 2)
	expectNone(t, &live)
}

func TestRuleAsyncTaskExtractSet(t *testing.T) {
	p, stream := opened(t, 1)
	raw := peer.New[abi.ArrowAsyncTask](1)
	defer peer.Free(raw)
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(p.handler, &raw[0], 0)
	expectCode(t, code, syscall.EINVAL)
	expectText(t, failure(t, stream).Message, "task.extract_data: NULL: expected a callback")
	p.release()
	// A producer sets it.
	q, h := started(t, rowsOf(1), endless)
	q.request(1)
	h.run()
	if q.tasks[0].ExtractData == 0 {
		t.Error("NULL")
	}
}

func TestRuleAsyncRequestNeeded(t *testing.T) {
	p, stream := created(t, AsyncOptions{Window: 3})
	_ = stream.Request(4)
	expectText(t, p.take(), "")
	p.schema(intSchema())
	_ = stream.Request(1)
	expectText(t, p.take(), "request 7, request 1")
	p.release()
}

func TestRuleAsyncRequestPositive(t *testing.T) {
	p, stream := opened(t, -1)
	for _, n := range []int64{0, -1, math.MinInt64} {
		if err := stream.Request(n); !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
	}
	expectText(t, p.take(), "")
	p.release()
}

func TestTheWindowOfAnAsyncStream(t *testing.T) {
	for window, expected := range map[int]string{
		0: "request 16", 1: "request 1, request 1, extract 1, request 1, extract 2, request 1, extract 3",
		4: "request 4, extract 1, request 2, extract 2, extract 3", 5: "request 5, extract 1, extract 2, request 3, extract 3",
	} {
		p, stream := opened(t, window)
		for rows := 1; rows <= 3 && window > 0; rows++ {
			p.task(rows)
			expectRows(t, []int64{nextRow(stream)}, int64(rows))
		}
		expectText(t, p.take(), expected)
		p.release()
	}
}

func TestRuleAsyncCancelLateCallsAccepted(t *testing.T) {
	for _, ends := range []bool{false, true} {
		p, stream := opened(t, 2)
		p.task(1)
		stream.Close()
		expectCode(t, p.task(2), 0)
		if ends {
			expectCode(t, p.end(), 0)
		} else {
			p.fail(71, "too late")
		}
		p.release()
		expectText(t, p.take(), "request 2, cancel, drop 1, drop 2")
	}
}

func TestAnExtractionThatFailsEndsTheStream(t *testing.T) {
	p, stream := opened(t, 3)
	p.give(&givenTask{number: 1, batch: rowsOf(1), code: 71}, nil)
	p.task(2)
	if err := failure(t, stream); err.Code != 71 || err.Message != "extract_data: failed without a message" {
		t.Error(err)
	}
	p.fail(71, "") // which the application knows
	expectRows(t, allRows(stream), -71)
	expectText(t, p.take(), "request 3, extract 1, drop 2")
	p.release()
}

func TestAWrongBatchCancelsTheStream(t *testing.T) {
	var live live
	closed := rowsOf(1)
	closed.Close()
	for expected, wrong := range map[string]*DeviceArray{
		"batch: device_type differs from the stream's: expected cpu, got cuda (rule async-producer.one-device-type)": onCUDA(live.batch(1)),
		"batch: released: expected a live array": closed,
	} {
		p, stream := opened(t, 3)
		p.give(&givenTask{number: 1, batch: wrong}, nil)
		p.task(2)
		if err := failure(t, stream); err.Code != syscall.EINVAL || err.Message != expected {
			t.Error(err)
		}
		expectText(t, p.take(), "request 3, extract 1, cancel, drop 2")
		p.release()
	}
	expectNone(t, &live)
	p, stream := created(t, AsyncOptions{})
	p.schema(must((&SchemaBuilder{Format: "+s", Children: []SchemaBuilder{{Format: "i"}}}).Build()))
	p.task(1)
	if text := failure(t, stream).Message; !strings.HasSuffix(text, "(rule async-next.same-schema)") {
		t.Error(text)
	}
	p.release()
}

func TestAWrongBatchAfterTheEndIsLostAlone(t *testing.T) {
	p, stream := opened(t, 3)
	p.give(&givenTask{number: 1, batch: onCUDA(rowsOf(1))}, nil)
	p.task(2)
	p.end()
	p.release()
	expectRows(t, []int64{nextRow(stream), nextRow(stream), nextRow(stream)}, -22, 2, 0)
}

func TestWarningsOfAnAsyncStream(t *testing.T) {
	for _, strict := range []bool{false, true} {
		var warnings []string
		p, stream := created(t, AsyncOptions{Options: Options{
			Strict: strict, OnWarning: func(w Warning) { warnings = append(warnings, w.Rule) },
		}})
		p.schema(intSchema())
		odd := rowsOf(1)
		odd.get().Reserved[1] = 1
		p.give(&givenTask{number: 1, batch: odd}, nil)
		found := nextRow(stream)
		if strict && found != -22 || !strict && (found != 1 || len(warnings) != 1 || warnings[0] != "device-array.reserved-zero") {
			t.Error(found, warnings)
		}
		p.release()
	}
}

func TestRuleAsyncTaskPrivateDataUntouched(t *testing.T) {
	p, stream := opened(t, 1) // the extraction finds its task by it
	p.task(1)
	p.end()
	expectRows(t, allRows(stream), 1, 0)
	p.release()
}

func TestRuleAsyncProducerPrivateDataUntouched(t *testing.T) {
	p, stream := opened(t, 1)
	before := p.objects[0].PrivateData
	stream.Close()
	p.release()
	expectText(t, p.take(), "request 1, cancel")
	if p.objects[0].PrivateData != before {
		t.Error("changed")
	}
}
