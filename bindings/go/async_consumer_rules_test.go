// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
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
