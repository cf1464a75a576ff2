package reexport

// #cgo CFLAGS: -I${SRCDIR}/../../../../cpp/include
// #include <stdint.h>
//
// #include "fletching/abi.h"
//
// typedef struct ArrowDeviceArrayStream Stream;
//
// static void call_release(uintptr_t function, void* self) {
//   ((void (*)(void*))function)(self);
// }
// static int call_get_schema(uintptr_t function, void* self, void* out) {
//   return ((int (*)(Stream*, struct ArrowSchema*))function)(self, out);
// }
// static int call_get_next(uintptr_t function, void* self, void* out) {
//   return ((int (*)(Stream*, struct ArrowDeviceArray*))function)(self, out);
// }
// static uintptr_t call_get_last_error(uintptr_t function, void* self) {
//   return (uintptr_t)((const char* (*)(Stream*))function)(self);
// }
import "C"

import (
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

// ReleaseSchema releases a schema, unless it has been released or moved away.
func ReleaseSchema(schema *abi.ArrowSchema) {
	if schema.Release != 0 {
		C.call_release(C.uintptr_t(schema.Release), unsafe.Pointer(schema))
	}
}

// ReleaseArray releases an array likewise.
func ReleaseArray(array *abi.ArrowArray) {
	if array.Release != 0 {
		C.call_release(C.uintptr_t(array.Release), unsafe.Pointer(array))
	}
}

// ReleaseStream releases a stream likewise.
func ReleaseStream(stream *abi.ArrowDeviceArrayStream) {
	if stream.Release != 0 {
		C.call_release(C.uintptr_t(stream.Release), unsafe.Pointer(stream))
	}
}

// GetSchema pulls the schema of a stream that has been checked. An error is a walk.Error with the
// errno and the text that the stream gave.
func GetSchema(stream *abi.ArrowDeviceArrayStream) (*abi.ArrowSchema, error) {
	schema := new(abi.ArrowSchema)
	if code := C.call_get_schema(C.uintptr_t(stream.GetSchema), unsafe.Pointer(stream), unsafe.Pointer(schema)); code != 0 {
		return nil, lastError(stream, int(code))
	}
	return schema, nil
}

// GetNext pulls the next array likewise; at the end it is released.
func GetNext(stream *abi.ArrowDeviceArrayStream) (*abi.ArrowDeviceArray, error) {
	array := new(abi.ArrowDeviceArray)
	if code := C.call_get_next(C.uintptr_t(stream.GetNext), unsafe.Pointer(stream), unsafe.Pointer(array)); code != 0 {
		return nil, lastError(stream, int(code))
	}
	return array, nil
}

// What a failed call left in its out-struct is nobody's.
func lastError(stream *abi.ArrowDeviceArrayStream, code int) error {
	text := C.call_get_last_error(C.uintptr_t(stream.GetLastError), unsafe.Pointer(stream))
	if text == 0 {
		return &walk.Error{Code: code, Text: "the stream failed and gave no text"}
	}
	return &walk.Error{Code: code, Text: walk.Printable(walk.Text(uintptr(text)))}
}
