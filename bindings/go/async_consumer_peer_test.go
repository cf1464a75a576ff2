// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// --- A consumer -----------------------------------------------------------------------------------

// consumerPeer records the calls that it receives and keeps the tasks.
type consumerPeer struct {
	calls
	handlers []abi.ArrowAsyncDeviceStreamHandler
	refuses  string // the call that returns the code
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

// extract returns the number of rows of the oldest task, or the negative code.
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
