// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// --- A producer that is driven by the test ----------------------------------------------------------

// producerPeer makes its calls one by one and records the consumer's calls.
type producerPeer struct {
	calls
	handler *abi.ArrowAsyncDeviceStreamHandler
	objects []abi.ArrowAsyncProducer
	inside  atomic.Pointer[func(call string)]
}

// givenTask is a task that the peer passes.
type givenTask struct {
	peer   *producerPeer
	number int
	batch  *DeviceArray
	code   int32
}

func (g *givenTask) ExtractData(self *abi.ArrowAsyncTask, out *abi.ArrowDeviceArray) int32 {
	if _, live := callbacks.DeleteHandle(self.PrivateData); !live {
		g.peer.add("extracted again")
		return int32(syscall.EINVAL)
	}
	what := "extract"
	if out == nil {
		what = "drop"
	}
	g.peer.called(fmt.Sprintf("%s %d", what, g.number))
	switch {
	case g.code != 0 && out != nil: // a partial result, which the consumer must not read
		out.Array.Release = callbacks.ArrowArrayReleaseStub()
		out.Array.PrivateData = 1
	case out != nil && !g.batch.IsReleased():
		if err := g.batch.Export(unsafe.Pointer(out)); err != nil {
			panic(err)
		}
	}
	g.batch.Close()
	return g.code
}

func (p *producerPeer) called(line string) {
	if inside := p.inside.Swap(nil); inside != nil {
		(*inside)(line)
	}
	p.add(line)
}

func (p *producerPeer) Request(_ *abi.ArrowAsyncProducer, n int64) {
	p.called(fmt.Sprint("request ", n))
}

func (p *producerPeer) Cancel(*abi.ArrowAsyncProducer) { p.called("cancel") }

// created returns a stream before its schema.
func created(t *testing.T, options AsyncOptions) (*producerPeer, *AsyncStream) {
	options.DropWithNull = true
	stream := NewAsyncStream(context.Background(), options)
	p := &producerPeer{
		handler: (*abi.ArrowAsyncDeviceStreamHandler)(stream.Handler()), objects: peer.New[abi.ArrowAsyncProducer](1),
	}
	p.objects[0] = abi.ArrowAsyncProducer{
		DeviceType: abi.DeviceCPU, PrivateData: callbacks.NewHandle(p),
		Request: callbacks.ArrowAsyncProducerRequestStub(), Cancel: callbacks.ArrowAsyncProducerCancelStub(),
	}
	p.handler.Producer = addressOf(p.objects)
	t.Cleanup(func() {
		stream.Close()
		callbacks.DeleteHandle(p.objects[0].PrivateData)
		peer.Free(p.objects)
	})
	return p, stream
}

// opened returns a stream with this window after its schema.
func opened(t *testing.T, window int) (*producerPeer, *AsyncStream) {
	p, stream := created(t, AsyncOptions{Window: window})
	expectCode(t, p.schema(intSchema()), 0)
	return p, stream
}

func (p *producerPeer) schema(schema *Schema) int32 {
	raw := peer.New[abi.ArrowSchema](1)
	defer peer.Free(raw)
	_ = schema.Export(unsafe.Pointer(&raw[0]))
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnSchema(p.handler, &raw[0])
	callbacks.ReleaseArrowSchema(&raw[0])
	raw[0] = abi.ArrowSchema{Format: 1}
	return code
}

// task passes a task with this number of rows, which is also its number.
func (p *producerPeer) task(rows int) int32 { return p.give(&givenTask{p, rows, rowsOf(rows), 0}, nil) }

func (p *producerPeer) give(task *givenTask, metadata []byte) int32 {
	task.peer = p
	raw := peer.New[abi.ArrowAsyncTask](1)
	defer peer.Free(raw)
	raw[0] = abi.ArrowAsyncTask{ExtractData: callbacks.ArrowAsyncTaskExtractDataStub(), PrivateData: callbacks.NewHandle(task)}
	block := peer.New[byte](len(metadata))
	defer peer.Free(block)
	copy(block, metadata)
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(p.handler, &raw[0], addressOf(block))
	if code != 0 {
		callbacks.DeleteHandle(raw[0].PrivateData)
		task.batch.Close()
	}
	raw[0].ExtractData = 1 // valid during the call only
	clear(block)
	return code
}

func (p *producerPeer) end() int32 {
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(p.handler, nil, 0)
	return code
}

// fail reports an error. An empty message is passed as NULL.
func (p *producerPeer) fail(code int32, text string) {
	memory := peer.New[byte](len(text))
	defer peer.Free(memory)
	copy(memory, text)
	address := addressOf(memory)
	callbacks.CallArrowAsyncDeviceStreamHandlerOnError(p.handler, code, address, 0)
	for i := range memory {
		memory[i] = 'x'
	}
}

func (p *producerPeer) release() { callbacks.ReleaseArrowAsyncDeviceStreamHandler(p.handler) }

// failure returns the error of a stream and checks that it stays.
func failure(t *testing.T, stream *AsyncStream) *Error {
	t.Helper()
	var ours *Error
	for range 2 {
		batch, _, err := stream.Next(context.Background())
		if !errors.As(err, &ours) {
			row(batch, err)
			t.Fatalf("expected an error, got %v", err)
		}
	}
	return ours
}
