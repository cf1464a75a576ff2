package reexport

// #include <stdint.h>
// #include <stdlib.h>
//
// extern int fletching_go_get_schema(uintptr_t, uintptr_t);
// extern int fletching_go_get_next(uintptr_t, uintptr_t);
// extern uintptr_t fletching_go_get_last_error(uintptr_t);
// extern void fletching_go_release_stream(uintptr_t);
import "C"

import (
	"errors"
	"runtime/cgo"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

// Observer sees every array that passes through a stream; its error, or its panic, fails that
// get_next.
type Observer func(*abi.ArrowSchema, *abi.ArrowDeviceArray) error

// stream is what stands behind one stream of ours.
type stream struct {
	source    *abi.ArrowDeviceArrayStream // moved in
	schema    *abi.ArrowSchema            // of the source, for the observer
	observe   Observer
	lastError *C.char // in memory of C, until the next call; nil after a success
}

// Stream moves a stream in and fills out, which passes on what the source gives, reexported, or its
// errno and text. It pulls the schema once. On an error nothing is changed.
func Stream(source *abi.ArrowDeviceArrayStream, observe Observer, out *abi.ArrowDeviceArrayStream) error {
	if err := walk.CheckStream(source); err != nil {
		return err
	}
	schema, err := GetSchema(source)
	if err != nil {
		return err
	}
	if err := walk.CheckSchema(schema); err != nil {
		ReleaseSchema(schema)
		return err
	}
	s := &stream{source: new(*source), schema: schema, observe: observe}
	filled := *source
	source.Release = 0
	filled.GetSchema = abi.ArrowDeviceArrayStreamGetSchemaFunc(uintptr(C.fletching_go_get_schema))
	filled.GetNext = abi.ArrowDeviceArrayStreamGetNextFunc(uintptr(C.fletching_go_get_next))
	filled.GetLastError = abi.ArrowDeviceArrayStreamGetLastErrorFunc(uintptr(C.fletching_go_get_last_error))
	filled.Release = abi.ArrowDeviceArrayStreamReleaseFunc(uintptr(C.fletching_go_release_stream))
	filled.PrivateData = uintptr(cgo.NewHandle(s))
	*out = filled
	exported.Add(1)
	return nil
}

//export fletching_go_get_schema
func fletching_go_get_schema(self, out C.uintptr_t) C.int {
	return guarded(self, func(s *stream) error {
		target := (*abi.ArrowSchema)(abi.Pointer(uintptr(out)))
		if target == nil {
			return walk.Errorf(syscall.EINVAL, "get_schema: out is NULL")
		}
		*target = abi.ArrowSchema{}
		schema, err := GetSchema(s.source)
		if err != nil {
			return err
		}
		defer ReleaseSchema(schema) // nothing to do where it was moved on
		return Schema(schema, target)
	})
}

//export fletching_go_get_next
func fletching_go_get_next(self, out C.uintptr_t) C.int {
	return guarded(self, func(s *stream) error {
		target := (*abi.ArrowDeviceArray)(abi.Pointer(uintptr(out)))
		if target == nil {
			return walk.Errorf(syscall.EINVAL, "get_next: out is NULL")
		}
		*target = abi.ArrowDeviceArray{}
		array, err := GetNext(s.source)
		if err != nil || array.Array.Release == 0 { // the end
			return err
		}
		defer ReleaseArray(&array.Array) // nothing to do where it was moved on
		if err := s.observe(s.schema, array); err != nil {
			return err
		}
		return Array(s.schema, array, target)
	})
}

//export fletching_go_get_last_error
func fletching_go_get_last_error(self C.uintptr_t) (text C.uintptr_t) {
	defer recovered("ArrowDeviceArrayStream.get_last_error")
	return C.uintptr_t(uintptr(unsafe.Pointer(streamOf(self).lastError)))
}

//export fletching_go_release_stream
func fletching_go_release_stream(self C.uintptr_t) {
	defer recovered("ArrowDeviceArrayStream.release")
	object := (*abi.ArrowDeviceArrayStream)(abi.Pointer(uintptr(self)))
	s := take[*stream](object.PrivateData)
	object.Release = 0
	ReleaseSchema(s.schema)
	ReleaseStream(s.source)
	C.free(unsafe.Pointer(s.lastError))
	released.Add(1)
}

// streamOf panics where nothing stands behind the stream.
func streamOf(self C.uintptr_t) *stream {
	object := (*abi.ArrowDeviceArrayStream)(abi.Pointer(uintptr(self)))
	return cgo.Handle(object.PrivateData).Value().(*stream)
}

// guarded runs the work of a callback; an error or a panic becomes an errno and the last error.
func guarded(self C.uintptr_t, work func(*stream) error) (code C.int) {
	var s *stream
	defer func() {
		if problem := recover(); problem != nil {
			code = fail(s, walk.Errorf(syscall.EIO, "panic in Go: %v", problem))
		}
	}()
	s = streamOf(self)
	C.free(unsafe.Pointer(s.lastError))
	s.lastError = nil
	if err := work(s); err != nil {
		return fail(s, err)
	}
	return 0
}

// fail keeps the text where there is a stream to keep it.
func fail(s *stream, err error) C.int {
	if s != nil {
		s.lastError = C.CString(walk.Printable(err.Error()))
	}
	var known *walk.Error
	if errors.As(err, &known) && known.Code != 0 {
		return C.int(known.Code)
	}
	return C.int(syscall.EIO)
}
