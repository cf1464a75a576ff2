// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #cgo linux LDFLAGS: -ldl
// #include "runtime_cuda.h"
// #include "runtime_hip.h"
// #include "runtime_opencl.h"
import "C"

import (
	"context"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// vendor is a runtime that is called directly: the waiter of its device types.
type vendor struct {
	library *library
	table   unsafe.Pointer // the struct of its functions
	calls   *C.struct_runtime
}

var vendors = map[runtimeKind]*vendor{
	cudaRuntime:   {&cudaLibrary, unsafe.Pointer(&C.fletching_cuda), &C.fletching_cuda_runtime},
	hipRuntime:    {&hipLibrary, unsafe.Pointer(&C.fletching_hip), &C.fletching_hip_runtime},
	openclRuntime: {&openclLibrary, unsafe.Pointer(&C.fletching_opencl), &C.fletching_opencl_runtime},
}

// vendorOf is nil for a device type without such a runtime.
func vendorOf(deviceType abi.DeviceType) *vendor { return vendors[runtimeOf(deviceType)] }

func errorOf(failure *C.struct_failure) error {
	return NewError(abi.SystemError(int32(failure.code)), printable(C.GoString(&failure.text[0])), nil)
}

// run runs an operation on an event.
func (v *vendor) run(operation *[0]byte, event SyncEvent, stream Stream) (done bool, err error) {
	handle, err := event.handle()
	if err != nil {
		return false, err
	}
	if err := v.library.load(v.table); err != nil {
		return false, err
	}
	request := C.struct_request{
		event: C.uintptr_t(handle), stream: C.uintptr_t(stream.handle), context: C.uintptr_t(event.context),
		device_id: C.int64_t(event.DeviceID), external: stream.onCapture == ExternalEvent,
	}
	var failure C.struct_failure
	if !C.fletching_run(operation, &request, &failure) {
		return false, errorOf(&failure)
	}
	return bool(request.is_done), nil
}

func (v *vendor) Synchronize(_ context.Context, event SyncEvent) error {
	_, err := v.run(v.calls.synchronize, event, Stream{})
	return err
}

func (v *vendor) WaitOn(event SyncEvent, stream Stream) error {
	_, err := v.run(v.calls.wait_on, event, stream)
	return withCaptureHint("wait_on", err,
		"wait before the capture begins, or pass stream.With(ExternalEvent) for a wait at each launch of the graph")
}

func (v *vendor) Ready(event SyncEvent) (bool, error) {
	return v.run(v.calls.query, event, Stream{})
}

// current is the context of the calling thread; 0 for none, and where contexts do not matter.
func (v *vendor) current() uintptr {
	if v.library.load(v.table) != nil {
		return 0
	}
	return uintptr(C.fletching_current(v.calls))
}

// record records an event that happens when all is done that is on the stream now.
func (v *vendor) record(stream Stream, deviceID int64) (*C.struct_recorded, error) {
	if err := v.library.load(v.table); err != nil {
		return nil, err
	}
	request := C.struct_request{
		stream: C.uintptr_t(stream.handle), device_id: C.int64_t(deviceID), external: stream.onCapture == ExternalEvent,
	}
	var failure C.struct_failure
	if recorded := C.fletching_record(v.calls, &request, &failure); recorded != nil {
		return recorded, nil
	}
	return nil, errorOf(&failure)
}
