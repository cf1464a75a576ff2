// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

// gate is an array of the reference producer behind a shut gate (cpp/producer/gate.h), and a queue of a consumer that
// has waited for nothing, on whatever Vulkan device there is. The conformance suite plays the other backends.
type gate struct {
	t        *testing.T
	producer gpu.Library
	gate     uintptr
	queue    uintptr
	array    *fletching.DeviceArray
	schema   abi.ArrowSchema
}

const (
	newData, absent = 1, 2
	readCase        = "record_batch"
)

// onGate runs the body in a separate process. Skips the test without a device.
func onGate(t *testing.T, body func(t *testing.T, g *gate)) {
	t.Helper()
	gpu.Need(t, "libfletching_producer.so")
	gpu.InProcess(t, func(t *testing.T) {
		g := &gate{t: t, producer: gpu.Open(t, "libfletching_producer.so")}
		if int32(g.out("FletchingProducerBackendPresence")) == absent {
			t.Skip("Vulkan is absent")
		}
		g.gate, g.queue = g.out("FletchingProducerGateCreate"), g.out("FletchingProducerQueueCreate")
		name := gpu.Text(readCase)
		schema, array := gpu.Alloc(int(unsafe.Sizeof(g.schema))), gpu.Alloc(int(unsafe.Sizeof(abi.ArrowDeviceArray{})))
		g.call("FletchingProducerExportArrayBehind", g.gate, name, schema, array)
		g.schema = *(*abi.ArrowSchema)(gpu.At(schema))
		g.array = imported(t, *(*abi.ArrowDeviceArray)(gpu.At(array)))
		for _, address := range []uintptr{name, schema, array} {
			gpu.Free(address)
		}
		body(t, g)
	})
}

// call appends a message, and prints what the producer says when it fails.
func (g *gate) call(name string, arguments ...uintptr) {
	g.t.Helper()
	message := gpu.Alloc(1024)
	defer gpu.Free(message)
	if int32(g.producer.Call(name, append(arguments, message)...)) != 0 {
		g.t.Fatalf("%s: %s", name, gpu.GoText(message))
	}
}

// out is what a function of a backend writes.
func (g *gate) out(name string) uintptr {
	g.t.Helper()
	backend, out := gpu.Text("vulkan"), gpu.Alloc(8)
	defer gpu.Free(backend)
	defer gpu.Free(out)
	g.call(name, backend, out)
	return *(*uintptr)(gpu.At(out))
}

func (g *gate) handle() uintptr { return g.producer.Call("FletchingProducerQueueHandle", g.queue) }

func (g *gate) stream() fletching.Stream {
	return fletching.NewStream(g.array.DeviceType(), g.handle())
}

func (g *gate) open() { g.call("FletchingProducerGateOpen", g.gate) }

func (g *gate) read() {
	name, raw := gpu.Text(readCase), gpu.Alloc(int(unsafe.Sizeof(abi.ArrowDeviceArray{})))
	succeed(g.t, g.array.Export(gpu.At(raw))) // the producer reads it, and does not move it
	g.call("FletchingProducerQueueRead", g.queue, name, raw)
	g.array = imported(g.t, *(*abi.ArrowDeviceArray)(gpu.At(raw)))
	gpu.Free(raw)
	gpu.Free(name)
}

func (g *gate) isIdle() bool {
	idle := gpu.Alloc(8)
	defer gpu.Free(idle)
	g.call("FletchingProducerQueueIsIdle", g.queue, idle)
	return *(*int32)(gpu.At(idle)) != 0
}

func (g *gate) verify(expected uintptr) {
	g.t.Helper()
	asserted := gpu.Alloc(8)
	defer gpu.Free(asserted)
	g.call("FletchingProducerQueueVerify", g.queue, expected, asserted)
	if *(*int64)(gpu.At(asserted)) == 0 {
		g.t.Error("nothing was verified")
	}
}

func (g *gate) liveArrays() int64 {
	counters := gpu.Alloc(7 * 8)
	defer gpu.Free(counters)
	g.producer.Call("FletchingProducerReadCounters", counters)
	return unsafe.Slice((*int64)(gpu.At(counters)), 7)[2]
}

func (g *gate) end() {
	g.open()
	g.array.Close()
	for g.liveArrays() > 0 { // a wait that was given up ends later
		runtime.Gosched()
	}
	g.call("FletchingProducerQueueDestroy", g.queue)
	g.call("FletchingProducerGateDestroy", g.gate)
	if schema, err := fletching.ImportSchema(unsafe.Pointer(&g.schema)); err == nil {
		schema.Close()
	}
}

func TestGatedVulkan(t *testing.T) {
	onGate(t, func(t *testing.T, g *gate) {
		expectCode(t, g.array.Synchronize(background), syscall.ENOTSUP, "VulkanContext")
		expectCode(t, g.array.WaitOn(g.stream()), syscall.ENOTSUP, "VulkanContext")
		handles := gpu.Alloc(6 * 8)
		defer gpu.Free(handles)
		g.call("FletchingProducerVulkanHandles", handles)
		words := unsafe.Slice((*uintptr)(gpu.At(handles)), 6)
		of := fletching.VulkanContext{Device: words[2], GetDeviceProcAddr: words[5]}
		expectReadyVulkan(t, g.array, of, false)
		expectCode(t, g.array.WaitOnVulkan(of, g.handle()), syscall.ENOTSUP)
		queued := of
		queued.ProducerQueue, queued.Queue = words[3], words[3]
		queued.SetStages = unsafe.Slice((*uint32)(gpu.At(handles)), 12)[9]
		succeed(t, g.array.WaitOnVulkan(queued, g.handle()))
		g.read()
		if g.isIdle() {
			t.Error("the queue does not wait")
		}
		ctx, cancel := context.WithCancel(background)
		go cancel()
		if err := g.array.SynchronizeVulkan(ctx, of); !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.ECANCELED) {
			t.Errorf("expected context.Canceled, got %v", err)
		}
		g.open()
		g.verify(newData)
		succeed(t, g.array.SynchronizeVulkan(background, of))
		expectReadyVulkan(t, g.array, of, true)
		g.end()
	})
}

func expectReadyVulkan(t *testing.T, array *fletching.DeviceArray, of fletching.VulkanContext, expected bool) {
	t.Helper()
	ready, err := array.ReadyVulkan(of)
	if err != nil || ready != expected {
		t.Errorf("ready: expected %v, got %v, %v", expected, ready, err)
	}
}
