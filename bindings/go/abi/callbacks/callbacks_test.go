// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package callbacks_test

import (
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

type releaseCounter struct{ releases int }

func (c *releaseCounter) Release(*abi.ArrowArray) { c.releases++ }

// newArray returns an array in Go memory with C release callbacks.
func newArray(value callbacks.ArrowArrayCallbacks) abi.ArrowArray {
	return abi.ArrowArray{
		Length:      3,
		Release:     callbacks.ArrowArrayReleaseStub(),
		PrivateData: callbacks.NewHandle(value),
	}
}

func TestReleaseOnce(t *testing.T) {
	value := &releaseCounter{}
	array := newArray(value)
	defer callbacks.DeleteHandle(array.PrivateData)
	var moved abi.ArrowArray
	array.MoveTo(&moved)
	moved.MoveTo(&moved)
	if !array.IsReleased() || moved.IsReleased() || moved.Length != 3 {
		t.Errorf("moved: %+v, source: %+v", moved, array)
	}
	callbacks.ReleaseArrowArray(&array)
	callbacks.ReleaseArrowArray(nil)
	callbacks.ReleaseArrowArray(&moved)
	callbacks.ReleaseArrowArray(&moved)
	if value.releases != 1 || !moved.IsReleased() {
		t.Errorf("%d releases, %+v", value.releases, moved)
	}
	device := abi.ArrowDeviceArray{Array: newArray(value)}
	defer callbacks.DeleteHandle(device.Array.PrivateData)
	callbacks.ReleaseArrowDeviceArray(&device)
	if value.releases != 2 || !device.IsReleased() {
		t.Errorf("%d releases, %+v", value.releases, device)
	}
	if callbacks.CallArrowArrayRelease(&moved) {
		t.Error("a NULL callback was called")
	}
	called := newArray(value)
	defer callbacks.DeleteHandle(called.PrivateData)
	if !callbacks.CallArrowArrayRelease(&called) || !called.IsReleased() || value.releases != 3 {
		t.Errorf("%d releases, %+v", value.releases, called)
	}
}

type stream struct{ problem any } // problem: the value to panic with

func (s *stream) GetSchema(_ *abi.ArrowDeviceArrayStream, out *abi.ArrowSchema) int32 {
	if s.problem != nil {
		panic(s.problem)
	}
	out.Flags = abi.FlagNullable
	return 0
}

func (s *stream) GetNext(*abi.ArrowDeviceArrayStream, *abi.ArrowDeviceArray) int32 {
	var none *abi.ArrowSchema
	return int32(none.Flags) // dereferences a nil pointer
}

func (s *stream) GetLastError(*abi.ArrowDeviceArrayStream) uintptr { panic("no text") }

func (s *stream) Release(*abi.ArrowDeviceArrayStream) { panic(s.problem) }

type badError struct{}

func (badError) Error() string { panic("in Error") }

func newStream(value callbacks.ArrowDeviceArrayStreamCallbacks) *abi.ArrowDeviceArrayStream {
	return &abi.ArrowDeviceArrayStream{
		GetSchema:    callbacks.ArrowDeviceArrayStreamGetSchemaStub(),
		GetNext:      callbacks.ArrowDeviceArrayStreamGetNextStub(),
		GetLastError: callbacks.ArrowDeviceArrayStreamGetLastErrorStub(),
		Release:      callbacks.ArrowDeviceArrayStreamReleaseStub(),
		PrivateData:  callbacks.NewHandle(value),
	}
}

func TestPanicReturnsEIO(t *testing.T) {
	value := &stream{}
	object := newStream(value)
	var seen []string
	callbacks.OnPanic(func(callback string, problem any) {
		seen = append(seen, callback)
		panic("in the observer")
	})
	defer callbacks.OnPanic(nil)

	code, called := callbacks.CallArrowDeviceArrayStreamGetNext(object, new(abi.ArrowDeviceArray))
	if code != int32(syscall.EIO) || !called {
		t.Errorf("%d, %v", code, called)
	}
	expectText(t, object, "ArrowDeviceArrayStream.get_next: panic in Go: runtime error: invalid memory address")

	for _, problem := range []struct {
		value any
		text  string
	}{{"one\x00two", "ArrowDeviceArrayStream.get_schema: panic in Go: one?two"}, {badError{}, "ArrowDeviceArrayStream.get_schema: panic in Go: %!v(PANIC="}} {
		value.problem = problem.value
		if code, _ := callbacks.CallArrowDeviceArrayStreamGetSchema(object, new(abi.ArrowSchema)); code != int32(syscall.EIO) {
			t.Errorf("%d", code)
		}
		expectText(t, object, problem.text)
		expectText(t, object, problem.text)
	}

	value.problem = nil
	schema := new(abi.ArrowSchema)
	if code, _ := callbacks.CallArrowDeviceArrayStreamGetSchema(object, schema); code != 0 || schema.Flags != abi.FlagNullable {
		t.Errorf("%d, %+v", code, schema)
	}
	expectText(t, object, "") // the method panics

	value.problem = "release"
	callbacks.ReleaseArrowDeviceArrayStream(object)
	if !object.IsReleased() {
		t.Error("not released")
	}
	expected := "get_next get_schema get_schema get_last_error release"
	if found := strings.ReplaceAll(strings.Join(seen, " "), "ArrowDeviceArrayStream.", ""); found != expected {
		t.Errorf("%s, expected %s", found, expected)
	}
	callbacks.DeleteHandle(object.PrivateData)
	callbacks.OnPanic(nil)
	unseen := newStream(value)
	callbacks.ReleaseArrowDeviceArrayStream(unseen)
	callbacks.DeleteHandle(unseen.PrivateData)
	if len(seen) != 5 {
		t.Errorf("an observer that was removed: %v", seen)
	}
}

func expectText(t *testing.T, object *abi.ArrowDeviceArrayStream, begin string) {
	t.Helper()
	address, called := callbacks.CallArrowDeviceArrayStreamGetLastError(object)
	if !called || !strings.HasPrefix(text(address), begin) || (begin == "") != (address == 0) {
		t.Errorf("%q, expected %q", text(address), begin)
	}
}

func TestInvalidHandles(t *testing.T) {
	object := newStream(&stream{})
	callbacks.DeleteHandle(object.PrivateData)
	for _, handle := range []uintptr{object.PrivateData, 0, 1, ^uintptr(0), uintptr(unsafe.Pointer(object))} {
		object.PrivateData = handle
		if code, called := callbacks.CallArrowDeviceArrayStreamGetSchema(object, new(abi.ArrowSchema)); code != int32(syscall.EIO) || !called {
			t.Errorf("%#x: %d, %v", handle, code, called)
		}
	}
	object.PrivateData = callbacks.NewHandle(&releaseCounter{}) // the handle of another struct type
	defer callbacks.DeleteHandle(object.PrivateData)
	if code, _ := callbacks.CallArrowDeviceArrayStreamGetSchema(object, new(abi.ArrowSchema)); code != int32(syscall.EIO) {
		t.Errorf("%d", code)
	}
	expectText(t, object, "ArrowDeviceArrayStream.get_schema: panic in Go: interface conversion")
}
