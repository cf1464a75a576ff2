// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package callbacks_test

import (
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// exchange implements one function. A call of any other function panics.
type exchange struct {
	callbacks.DLPackExchangeAPICallbacks
}

func (exchange) CurrentWorkStream(device abi.DLDeviceType, id int32, out *uintptr) int32 {
	*out = uintptr(device)<<8 | uintptr(id)
	return 0
}

// errorRecorder records the arguments of set_error, which has the same signature as on_next_task except for the names.
type errorRecorder struct {
	callbacks.ArrowAsyncDeviceStreamHandlerCallbacks
	kind, message string
}

func (e *errorRecorder) OnNextTask(_ *abi.ArrowAsyncDeviceStreamHandler, task *abi.ArrowAsyncTask, metadata uintptr) int32 {
	e.kind = text(uintptr(unsafe.Pointer(task)))
	e.message = text(metadata)
	return 0
}

func text(address uintptr) string {
	return (&abi.ArrowSchema{Name: address, Release: 1}).NameString()
}

func TestExchangeFunctionsWithoutStruct(t *testing.T) {
	table := &abi.DLPackExchangeAPI{
		CurrentWorkStream:      callbacks.DLPackExchangeAPICurrentWorkStreamStub(),
		ManagedTensorAllocator: callbacks.DLPackExchangeAPIManagedTensorAllocatorStub(),
	}
	expect := func(expected int32, stream uintptr) {
		t.Helper()
		var found uintptr
		code, called := callbacks.CallDLPackExchangeAPICurrentWorkStream(table, abi.DeviceCUDA, 5, &found)
		if code != expected || !called || found != stream {
			t.Errorf("%d, %v, stream %#x", code, called, found)
		}
	}
	expect(-1, 0)
	callbacks.SetDLPackExchangeAPI(exchange{})
	expect(0, 0x205)

	received := &errorRecorder{}
	handler := &abi.ArrowAsyncDeviceStreamHandler{PrivateData: callbacks.NewHandle(received)}
	setError := uintptr(callbacks.ArrowAsyncDeviceStreamHandlerOnNextTaskStub())
	var out uintptr
	for _, function := range []uintptr{0, setError} {
		code, called := callbacks.CallDLPackExchangeAPIManagedTensorAllocator(table, new(abi.DLTensor), &out, uintptr(unsafe.Pointer(handler)), function)
		if code != -1 || !called || (received.kind != "") != (function != 0) {
			t.Errorf("%d, %v, %+v", code, called, received)
		}
	}
	expected := "DLPackExchangeAPI.managed_tensor_allocator: panic in Go: runtime error: invalid memory address or nil pointer dereference"
	if received.kind != "RuntimeError" || received.message != expected {
		t.Errorf("%+v", received)
	}
	callbacks.SetDLPackExchangeAPI(nil)
	expect(-1, 0)
	callbacks.CallDLPackExchangeAPIManagedTensorAllocator(table, new(abi.DLTensor), &out, uintptr(unsafe.Pointer(handler)), setError)
	if received.message != "DLPackExchangeAPI.managed_tensor_allocator: panic in Go: no value has been set" {
		t.Errorf("%+v", received)
	}
	if err := peer.Growth(func() {
		callbacks.CallDLPackExchangeAPIManagedTensorAllocator(table, new(abi.DLTensor), &out, uintptr(unsafe.Pointer(handler)), setError)
	}); err != nil && err != peer.ErrNotReported {
		t.Error(err)
	}
	callbacks.DeleteHandle(handler.PrivateData)
}

type tensor struct{ deleted int }

func (d *tensor) Deleter(*abi.DLManagedTensorVersioned) { d.deleted++ }

func TestReleaseAcceptsNullDeleter(t *testing.T) {
	value := &tensor{}
	managed := &abi.DLManagedTensorVersioned{ManagerCtx: callbacks.NewHandle(value)}
	defer callbacks.DeleteHandle(managed.ManagerCtx)
	callbacks.ReleaseDLManagedTensorVersioned(nil)
	callbacks.ReleaseDLManagedTensorVersioned(managed)
	managed.Deleter = callbacks.DLManagedTensorVersionedDeleterStub()
	callbacks.ReleaseDLManagedTensorVersioned(managed)
	if value.deleted != 1 {
		t.Errorf("%d calls", value.deleted)
	}
}
