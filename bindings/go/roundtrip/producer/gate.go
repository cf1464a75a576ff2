package producer

// #include "library.h"
import "C"

import (
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// Presence returns "real", "stand-in" or "absent", as a cell has it, and the device's name and version, or
// why it is absent.
func Presence(backend string) (status, description string, err error) {
	var presence C.int32_t
	var message C.Message
	if code := C.fletching_go_producer_BackendPresence(text(backend), &presence, &message); code != 0 {
		return "", "", fletching.NewError(syscall.Errno(code), C.GoString(&message.text[0]), nil)
	}
	status = map[C.int32_t]string{C.FLETCHING_PRODUCER_STAND_IN: "stand-in", C.FLETCHING_PRODUCER_REAL: "real"}[presence]
	if status == "" {
		status = "absent"
	}
	return status, C.GoString(&message.text[0]), nil
}

// Vulkan returns what a wait on an event of the producer needs.
func Vulkan() (fletching.VulkanContext, error) {
	var handles C.struct_FletchingProducerVulkan
	err := call(func(message *C.Message) C.int {
		return C.fletching_go_producer_VulkanHandles(&handles, message)
	})
	return fletching.VulkanContext{
		Device: uintptr(handles.device), ProducerQueue: uintptr(handles.queue), Queue: uintptr(handles.queue),
		SetStages:         uint32(handles.set_stages),
		GetDeviceProcAddr: uintptr(unsafe.Pointer(handles.get_device_proc_addr)),
	}, err
}

// Gate is where exports come from: behind a shut gate, or, where a device has no queues, without one.
type Gate struct {
	backend string
	gate    *C.Gate
}

// NewGate returns a shut gate, to be destroyed after what was exported from it is released.
func NewGate(backend string, hasQueues bool) (*Gate, error) {
	var gate *C.Gate
	if !hasQueues {
		return &Gate{backend, nil}, nil
	}
	err := call(func(message *C.Message) C.int {
		return C.fletching_go_producer_GateCreate(text(backend), &gate, message)
	})
	return &Gate{backend, gate}, err
}

// ExportArray fills schema and array.
func (g *Gate) ExportArray(name string, schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) error {
	if g.gate == nil {
		return ExportArray(g.backend, name, schema, array)
	}
	return call(func(message *C.Message) C.int {
		return C.fletching_go_producer_ExportArrayBehind(g.gate, text(name), cSchema(schema), cArray(array), message)
	})
}

// ExportStream fills stream, which fails before batch failAt, or never when that is -1.
func (g *Gate) ExportStream(name string, batches, failAt int64, stream *abi.ArrowDeviceArrayStream) error {
	if g.gate == nil {
		return ExportStream(g.backend, name, batches, failAt, stream)
	}
	return call(func(message *C.Message) C.int {
		return C.fletching_go_producer_ExportStreamBehind(g.gate, text(name), C.int64_t(batches), C.int64_t(failAt), cStream(stream), message)
	})
}

// RunAsync lets a thread of the producer call the handler. After an error it was not called.
func (g *Gate) RunAsync(name string, batches, failAt int64, handler unsafe.Pointer) error {
	return call(func(message *C.Message) C.int {
		return C.fletching_go_producer_RunAsync(text(g.backend), g.gate, text(name), C.int64_t(batches), C.int64_t(failAt), (*C.Handler)(handler), message)
	})
}

// AwaitAsync returns when every handler is released.
func AwaitAsync() { C.fletching_go_producer_AwaitAsync() }

// Open lets what is behind the gate run.
func (g *Gate) Open() error {
	if g.gate == nil {
		return nil
	}
	return call(func(message *C.Message) C.int { return C.fletching_go_producer_GateOpen(g.gate, message) })
}

// Destroy opens the gate and waits for what is behind it.
func (g *Gate) Destroy() {
	C.fletching_go_producer_GateDestroy(g.gate, nil)
	g.gate = nil
}

// Content is what a queue has read.
type Content C.int32_t

// What is there before the gate is opened, and afterwards.
const (
	Old Content = C.FLETCHING_PRODUCER_OLD
	New Content = C.FLETCHING_PRODUCER_NEW
)

// Queue is a consumer's queue, to be destroyed before the arrays that it reads are released.
type Queue struct {
	queue *C.Queue
}

// NewQueue returns a queue that is independent of any gate.
func NewQueue(backend string) (*Queue, error) {
	var queue *C.Queue
	err := call(func(message *C.Message) C.int {
		return C.fletching_go_producer_QueueCreate(text(backend), &queue, message)
	})
	return &Queue{queue}, err
}

// Handle returns what a wait needs, valid until the next call.
func (q *Queue) Handle() uintptr { return uintptr(C.fletching_go_producer_QueueHandle(q.queue)) }

// Read enqueues a read of every buffer.
func (q *Queue) Read(name string, array *abi.ArrowDeviceArray) error {
	return call(func(message *C.Message) C.int {
		return C.fletching_go_producer_QueueRead(q.queue, text(name), cArray(array), message)
	})
}

// IsIdle reports whether everything on the queue is done.
func (q *Queue) IsIdle() (bool, error) {
	var idle C.int32_t
	err := call(func(message *C.Message) C.int { return C.fletching_go_producer_QueueIsIdle(q.queue, &idle, message) })
	return idle != 0, err
}

// Verify waits for the reads, and returns how many bytes are as expected: all.
func (q *Queue) Verify(expected Content) (int64, error) {
	var compared C.int64_t
	err := call(func(message *C.Message) C.int {
		return C.fletching_go_producer_QueueVerify(q.queue, C.int32_t(expected), &compared, message)
	})
	return int64(compared), err
}

// Destroy waits for what is on the queue: for ever while that is behind a shut gate.
func (q *Queue) Destroy() {
	C.fletching_go_producer_QueueDestroy(q.queue, nil)
	q.queue = nil
}

// ExtDevQuery reports whether an event of ext_dev has happened. The event is one of ext_dev.h.
func ExtDevQuery(event uintptr) bool {
	return C.fletching_go_producer_ext_dev_query(C.uintptr_t(event)) != 0
}

// ExtDevSynchronize waits for the event.
func ExtDevSynchronize(event uintptr) {
	C.fletching_go_producer_ext_dev_synchronize(C.uintptr_t(event))
}

// ExtDevWaitOn lets a queue of ext_dev wait for the event.
func ExtDevWaitOn(event, queue uintptr) error {
	if code := C.fletching_go_producer_ext_dev_wait_on(C.uintptr_t(event), C.uintptr_t(queue)); code != 0 {
		return fletching.NewError(syscall.Errno(code), "ext_dev: wait_on failed", nil)
	}
	return nil
}
