// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package gpu

import (
	"runtime"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
)

// API provides the stand-ins of CUDA and HIP under the same names, so that one test covers both. Every result is
// checked.
type API struct {
	Library
	Type                           abi.DeviceType
	Init, Query, Wait, Record      string
	prefix, version                string
	makeStream, makeEvent, destroy string
}

// CUDA opens the CUDA stand-in in a folder of the libraries.
func CUDA(tb testing.TB, folder string) *API {
	return open(tb, folder+"/libcuda.so.1", &API{
		Type: abi.DeviceCUDA, prefix: "cu", version: "_v2",
		makeStream: "cuStreamCreate", makeEvent: "cuEventCreate", destroy: "cuStreamDestroy_v2",
	})
}

// HIP opens the HIP stand-in in a folder of the libraries.
func HIP(tb testing.TB, folder string) *API {
	return open(tb, folder+"/libamdhip64.so.7", &API{
		Type: abi.DeviceROCM, prefix: "hip",
		makeStream: "hipStreamCreateWithFlags", makeEvent: "hipEventCreateWithFlags", destroy: "hipStreamDestroy",
	})
}

func open(tb testing.TB, path string, api *API) *API {
	api.Library = Open(tb, path)
	p := api.prefix
	api.Init, api.Query, api.Wait, api.Record = p+"Init", p+"EventQuery", p+"EventSynchronize", p+"EventRecord"
	api.OK(api.Init, 0)
	return api
}

func (api *API) isCUDA() bool { return api.prefix == "cu" }

// OpenDevice makes the device current for the calling thread.
func (api *API) OpenDevice(device int) {
	if !api.isCUDA() {
		api.OK("hipSetDevice", uintptr(device))
		return
	}
	context := api.Get("cuDevicePrimaryCtxRetain", 0, uintptr(device))
	api.OK("cuCtxPushCurrent_v2", context)
}

// CloseDevice undoes OpenDevice.
func (api *API) CloseDevice(device int) {
	if !api.isCUDA() {
		api.OK("hipSetDevice", 0)
		return
	}
	api.Get("cuCtxPopCurrent_v2", 0)
	api.OK("cuDevicePrimaryCtxRelease_v2", uintptr(device))
}

// MakeStream creates a stream that does not synchronize with other streams.
func (api *API) MakeStream() uintptr { return api.Get(api.makeStream, 0, 1) }

// SynchronizeStream waits until a stream is done.
func (api *API) SynchronizeStream(stream uintptr) { api.OK(api.prefix+"StreamSynchronize", stream) }

// DestroyStream waits for the stream and destroys it.
func (api *API) DestroyStream(stream uintptr) {
	api.SynchronizeStream(stream)
	api.OK(api.destroy, stream)
}

// IsIdle reports whether a stream is done.
func (api *API) IsIdle(stream uintptr) bool {
	return int32(api.Call(api.prefix+"StreamQuery", stream)) == 0
}

// MakeEvent creates an event and returns the address of its handle.
func (api *API) MakeEvent() uintptr {
	address := Alloc(8)
	*(*uintptr)(At(address)) = api.Get(api.makeEvent, 0, 2)
	return address
}

// RecordEvent records the event whose handle is at the address.
func (api *API) RecordEvent(event, stream uintptr) {
	api.OK(api.Record, *(*uintptr)(At(event)), stream)
}

// DestroyEvent destroys the event and frees its handle.
func (api *API) DestroyEvent(event uintptr) {
	name := map[bool]string{true: "cuEventDestroy_v2", false: "hipEventDestroy"}[api.isCUDA()]
	api.OK(name, *(*uintptr)(At(event)))
	Free(event)
}

// MakeWord allocates a word that a stream can wait for.
func (api *API) MakeWord() uintptr {
	if api.isCUDA() {
		return api.Get("cuMemHostAlloc", 0, 4, 2)
	}
	return api.Get("hipExtMallocWithFlags", 0, 8, 2)
}

// FreeWord frees a word.
func (api *API) FreeWord(word uintptr) {
	api.OK(map[bool]string{true: "cuMemFreeHost", false: "hipFree"}[api.isCUDA()], word)
}

// WaitFor makes a stream wait until the word is 1.
func (api *API) WaitFor(stream, word uintptr) {
	if api.isCUDA() {
		address := api.Get("cuMemHostGetDevicePointer_v2", 0, word, 0)
		api.OK("cuStreamWaitValue32_v2", stream, address, 1, 0)
		return
	}
	api.OK("hipStreamWaitValue32", stream, word, 1, 0, 0xFFFFFFFF)
}

// --- Captures -----------------------------------------------------------------------------------

// BeginCapture begins a capture in global mode.
func (api *API) BeginCapture(stream uintptr) {
	api.Library.tb.Helper()
	api.OK(api.prefix+"StreamBeginCapture"+api.version, stream, 0)
}

// EndCapture ends a valid capture and returns the graph.
func (api *API) EndCapture(stream uintptr) uintptr {
	api.Library.tb.Helper()
	return api.Get(api.prefix+"StreamEndCapture", 1, stream)
}

// DestroyGraph destroys a graph.
func (api *API) DestroyGraph(graph uintptr) { api.OK(api.prefix+"GraphDestroy", graph) }

// --- Control ------------------------------------------------------------------------------------

// Counts mirrors struct FletchingStandinCounts.
type Counts struct {
	PrimaryReferences, Contexts, Streams, Events, Modules int64
	DeviceMemory, HostMemory, ManagedMemory               int64
	Graphs, Abandoned                                     int64
}

// Alive counts the live objects of the stand-in.
func (api *API) Alive() Counts {
	counts := Alloc(80)
	defer Free(counts)
	api.Call("FletchingStandinLeaks", counts)
	return *(*Counts)(At(counts))
}

// Calls returns the number of calls of a function.
func (api *API) Calls(function string) int64 {
	return int64(api.CallText("FletchingStandinCalls", function))
}

// Settle waits until no stream can make progress.
func (api *API) Settle() { api.Call("FletchingStandinSettle") }

// SettleReleases waits until no thread is in relaxed capture mode. Threads that release arrays use this mode.
func (api *API) SettleReleases() {
	for int64(api.Call("FletchingStandinRelaxedThreads")) > 0 {
		runtime.Gosched()
	}
}

// --- Gates --------------------------------------------------------------------------------------

// Gated is an open device with a consumer's stream, and a producer's stream behind a gate.
type Gated struct {
	*API
	Producer, Consumer uintptr
	before             Counts
	word               uintptr
}

// NewGated opens the device for a test.
func (api *API) NewGated() *Gated {
	api.SettleReleases()
	api.OpenDevice(0)
	gated := &Gated{API: api, before: api.Alive(), word: api.MakeWord()}
	*(*uint32)(At(gated.word)) = 0
	gated.Producer, gated.Consumer = api.MakeStream(), api.MakeStream()
	return gated
}

// Shut makes later work on the producer's stream wait.
func (g *Gated) Shut() {
	*(*uint32)(At(g.word)) = 0
	g.WaitFor(g.Producer, g.word)
}

// OpenGate opens the gate.
func (g *Gated) OpenGate() { *(*uint32)(At(g.word)) = 1 }

// IsBlocked reports whether a stream is blocked.
func (g *Gated) IsBlocked(stream uintptr) bool {
	g.Settle()
	return !g.IsIdle(stream)
}

// End destroys the fixture's objects and reports a leak unless as many objects are alive as at the start.
func (g *Gated) End() {
	g.tb.Helper()
	g.OpenGate()
	g.DestroyStream(g.Producer)
	g.DestroyStream(g.Consumer)
	g.FreeWord(g.word)
	g.SettleReleases()
	if after := g.Alive(); after != g.before {
		g.tb.Errorf("something leaks: expected %+v, got %+v", g.before, after)
	}
	g.CloseDevice(0)
}
