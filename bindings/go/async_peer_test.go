// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// --- Data -----------------------------------------------------------------------------------------

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func intSchema() *Schema { return must((&SchemaBuilder{Format: "i"}).Build()) }

// rowsOf is a batch of so many rows.
func rowsOf(rows int) *DeviceArray { return must(must(FromValues(make([]int32, rows))).ToDevice()) }

// live counts the batches that are not released.
type live struct{ atomic.Int64 }

func (l *live) Close() { l.Add(-1) }

func (l *live) batch(rows int) *DeviceArray {
	batch := rowsOf(rows)
	l.Add(1)
	if err := batch.Attach(l); err != nil {
		panic(err)
	}
	return batch
}

func onCUDA(array *DeviceArray) *DeviceArray {
	array.get().DeviceType = abi.DeviceCUDA
	return array
}

// row is the number of rows of a batch, which is closed; or the negative code; 0 at the end.
func row(batch *DeviceArray, err error) int64 {
	switch {
	case err == io.EOF:
		return 0
	case err != nil:
		return -int64(codeOf(err))
	}
	defer batch.Close()
	return batch.Length()
}

func nextRow(stream *AsyncStream) int64 {
	batch, _, err := stream.Next(context.Background())
	return row(batch, err)
}

// allRows ends with 0, or the negative code.
func allRows(stream *AsyncStream) []int64 {
	var rows []int64
	for len(rows) == 0 || rows[len(rows)-1] > 0 {
		rows = append(rows, nextRow(stream))
	}
	return rows
}

func expectText(t *testing.T, found, expected string) {
	t.Helper()
	if found != expected {
		t.Errorf("expected %q, got %q", expected, found)
	}
}

func expectRows(t *testing.T, found []int64, expected ...int64) {
	t.Helper()
	if !slices.Equal(found, expected) {
		t.Errorf("expected %v, got %v", expected, found)
	}
}

func expectCode(t *testing.T, found int32, expected syscall.Errno) {
	t.Helper()
	if found != int32(expected) {
		t.Errorf("expected the code %d, got %d", expected, found)
	}
}

func expectNone(t *testing.T, live *live) {
	t.Helper()
	if left := live.Load(); left != 0 {
		t.Errorf("expected that all is released, got %d batches", left)
	}
}

// calls are those that a peer got, in their order.
type calls struct {
	mutex sync.Mutex
	lines []string
	news  sync.Cond
}

func (c *calls) add(line string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lines = append(c.lines, line)
	if c.news.L != nil {
		c.news.Broadcast()
	}
}

func (c *calls) take() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	defer func() { c.lines = nil }()
	return strings.Join(c.lines, ", ")
}

// --- A consumer -----------------------------------------------------------------------------------

// consumerPeer writes down what is called, and keeps the tasks.
type consumerPeer struct {
	calls
	handlers []abi.ArrowAsyncDeviceStreamHandler
	refuses  string // a call, with the code
	code     int32
	inside   func(call string) // runs inside every call
	running  atomic.Bool
	overlaps atomic.Int32
	mutex    sync.Mutex
	tasks    []abi.ArrowAsyncTask
	metadata []Metadata
}

func newConsumerPeer(t *testing.T) *consumerPeer {
	p := &consumerPeer{handlers: peer.New[abi.ArrowAsyncDeviceStreamHandler](1)}
	p.handlers[0] = abi.ArrowAsyncDeviceStreamHandler{
		OnSchema:    callbacks.ArrowAsyncDeviceStreamHandlerOnSchemaStub(),
		OnNextTask:  callbacks.ArrowAsyncDeviceStreamHandlerOnNextTaskStub(),
		OnError:     callbacks.ArrowAsyncDeviceStreamHandlerOnErrorStub(),
		Release:     callbacks.ArrowAsyncDeviceStreamHandlerReleaseStub(),
		PrivateData: callbacks.NewHandle(p),
	}
	t.Cleanup(func() {
		callbacks.DeleteHandle(p.handlers[0].PrivateData)
		peer.Free(p.handlers)
		if p.overlaps.Load() != 0 {
			t.Error("two handler calls ran at once")
		}
	})
	return p
}

func (p *consumerPeer) handler() unsafe.Pointer { return unsafe.Pointer(&p.handlers[0]) }

func (p *consumerPeer) called(name, line string) int32 {
	if p.running.Swap(true) {
		p.overlaps.Add(1)
	}
	defer p.running.Store(false)
	p.add(line)
	if p.inside != nil {
		p.inside(name)
	}
	if p.refuses == name {
		return p.code
	}
	return 0
}

func (p *consumerPeer) OnSchema(_ *abi.ArrowAsyncDeviceStreamHandler, schema *abi.ArrowSchema) int32 {
	code := p.called("schema", "schema")
	if code == 0 {
		callbacks.ReleaseArrowSchema(schema)
	}
	return code
}

func (p *consumerPeer) OnNextTask(_ *abi.ArrowAsyncDeviceStreamHandler, task *abi.ArrowAsyncTask, metadata uintptr) int32 {
	if task == nil {
		return p.called("end", "end")
	}
	p.mutex.Lock()
	p.tasks = append(p.tasks, *task)
	p.mutex.Unlock()
	code := p.called("task", "task")
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.metadata = append(p.metadata, must(metadataAt(metadata)))
	if code != 0 {
		p.tasks = p.tasks[:len(p.tasks)-1]
	}
	return code
}

func (p *consumerPeer) OnError(_ *abi.ArrowAsyncDeviceStreamHandler, code int32, message, metadata uintptr) {
	if metadata != 0 {
		p.add("metadata of an error")
	}
	p.called("error", fmt.Sprintf("error %d %s", code, printableC(message)))
}

func (p *consumerPeer) Release(*abi.ArrowAsyncDeviceStreamHandler) { p.called("release", "release") }

func (p *consumerPeer) object() *abi.ArrowAsyncProducer {
	return (*abi.ArrowAsyncProducer)(abi.Pointer(p.handlers[0].Producer))
}

func (p *consumerPeer) request(n int64) { callbacks.CallArrowAsyncProducerRequest(p.object(), n) }

func (p *consumerPeer) cancel() { callbacks.CallArrowAsyncProducerCancel(p.object()) }

func (p *consumerPeer) oldest() abi.ArrowAsyncTask {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	task := p.tasks[0]
	p.tasks = p.tasks[1:]
	return task
}

// extract is the number of rows of the oldest task, or the negative code.
func (p *consumerPeer) extract() int64 {
	task := p.oldest()
	array := peer.New[abi.ArrowDeviceArray](1)
	defer peer.Free(array)
	if code, _ := callbacks.CallArrowAsyncTaskExtractData(&task, &array[0]); code != 0 {
		return -int64(code)
	}
	return row(ImportDeviceArray(unsafe.Pointer(&array[0])))
}

func (p *consumerPeer) drop() int32 {
	task := p.oldest()
	code, _ := callbacks.CallArrowAsyncTaskExtractData(&task, nil)
	return code
}

// --- A producer that is driven by hand --------------------------------------------------------------

// hand runs the steps of a producer whose batches never wait, other than after the last.
type hand struct {
	*asyncSending
	idle     atomic.Bool
	released bool
	freed    bool
}

// items are batches and errors.
func items(all ...any) []any { return all }

// counting are batches of 1 row, 2 rows and so on.
func counting(count int) (all []any) {
	for rows := 1; rows <= count; rows++ {
		all = append(all, rowsOf(rows))
	}
	return all
}

const endless = "endless" // the last of the items: nothing comes after it

func yieldAll(ctx context.Context, all []any, idle *atomic.Bool, yield func(AsyncBatch, error) bool) {
	for at, item := range all {
		more := false
		switch item := item.(type) {
		case *DeviceArray:
			more = yield(AsyncBatch{Array: item}, nil)
		case AsyncBatch:
			more = yield(item, nil)
		case error:
			more = yield(AsyncBatch{}, item)
		default:
			idle.Store(true)
			<-ctx.Done()
		}
		if !more {
			closeAll(all[at+1:])
			return
		}
	}
}

func closeAll(all []any) {
	for _, item := range all {
		discard(item)
	}
}

func opens(schema *Schema, idle *atomic.Bool, all []any) openBatches {
	return func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
		return schema, func(yield func(AsyncBatch, error) bool) { yieldAll(ctx, all, idle, yield) }, nil
	}
}

// sendTo is stepped until it waits for the peer.
func sendTo(t *testing.T, p *consumerPeer, producer AsyncProducer, all []any) *hand {
	h := &hand{}
	if producer.DeviceType == 0 {
		producer.DeviceType = abi.DeviceCPU
	}
	h.asyncSending = newAsyncSending(context.Background(), producer, p.handler())
	if producer.Open == nil {
		producer.Open = opens(intSchema(), &h.idle, all)
	}
	h.start(producer.Open)
	t.Cleanup(func() {
		if !h.released {
			p.inside = nil
			h.stop(asyncByConsumer, nil)
			for len(p.tasks) > 0 {
				p.drop()
			}
			h.run()
		}
		if !h.freed {
			h.free()
		}
	})
	return h
}

// run makes the calls that are due. True when the handler is released.
func (h *hand) run() bool {
	for !h.released {
		for settled := false; !settled; runtime.Gosched() {
			h.mutex.Lock()
			settled = h.stopped != asyncRunning || h.schema != nil || h.next != nil || h.ended || h.idle.Load()
			h.mutex.Unlock()
		}
		switch h.step() {
		case asyncWaits:
			return false
		case asyncReleases:
			h.released = true
		}
	}
	return true
}

// started has sent the schema.
func started(t *testing.T, all ...any) (*consumerPeer, *hand) {
	p := newConsumerPeer(t)
	h := sendTo(t, p, AsyncProducer{}, all)
	h.run()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.calls.mutex.Lock()
	defer p.calls.mutex.Unlock()
	if len(p.lines) == 0 || p.lines[0] != "schema" {
		t.Errorf("expected schema, got %q", p.lines)
		return p, h
	}
	p.lines = p.lines[1:]
	return p, h
}

// --- A producer that calls by hand ------------------------------------------------------------------

// producerPeer makes its calls one by one, and writes down those of the consumer.
type producerPeer struct {
	calls
	handler *abi.ArrowAsyncDeviceStreamHandler
	objects []abi.ArrowAsyncProducer
	inside  atomic.Pointer[func(call string)]
}

// givenTask is a task of the peer.
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
	case g.code != 0 && out != nil: // a partial fill, which is not the consumer's to look at
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

// created is a stream whose schema is not known.
func created(t *testing.T, options AsyncOptions) (*producerPeer, *AsyncStream) {
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

// opened is a stream with this window whose schema is known.
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

// task has so many rows, which are its number.
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

// fail reports an error; without a text it is NULL.
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

// failure is the error of a stream, which stays.
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
