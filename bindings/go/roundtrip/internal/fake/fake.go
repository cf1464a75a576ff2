// Package fake makes foreign structs for the tests, good ones and bad ones.
package fake

// #cgo CFLAGS: -I${SRCDIR}/../../../../../cpp/include
// #include <errno.h>
// #include <stdlib.h>
//
// #include "fletching/abi.h"
//
// typedef struct ArrowDeviceArrayStream Stream;
//
// static int g_released;
//
// static void release_schema(struct ArrowSchema* self) { self->release = NULL; ++g_released; }
// static void release_array(struct ArrowArray* self) { self->release = NULL; ++g_released; }
// static void release_stream(Stream* self) { self->release = NULL; ++g_released; }
//
// static int get_schema(Stream* self, struct ArrowSchema* out) {
//   *out = *(struct ArrowSchema*)self->private_data;
//   return 0;
// }
// static int get_next(Stream* self, struct ArrowDeviceArray* out) {
//   (void)self;
//   *out = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU};
//   out->array.release = release_array;
//   return 0;
// }
// static int refuse_schema(Stream* self, struct ArrowSchema* out) {
//   (void)self;
//   out->release = release_schema;  // nobody's, after a failure
//   return EIO;
// }
// static int refuse_next(Stream* self, struct ArrowDeviceArray* out) {
//   (void)self;
//   out->array.release = release_array;  // nobody's, after a failure
//   return EIO;
// }
// static const char* no_text(Stream* self) { (void)self; return NULL; }
// static const char* bad_text(Stream* self) { (void)self; return "\xff\xfe broken\n"; }
//
// static void fill_schema(struct ArrowSchema* out, const char* format) {
//   *out = (struct ArrowSchema){.format = format, .release = release_schema};
// }
// static void fill_array(struct ArrowDeviceArray* out) { get_next(NULL, out); }
// static void fill_stream(Stream* out, struct ArrowSchema* schema) {
//   *out = (Stream){ARROW_DEVICE_CPU, get_schema, get_next, no_text, release_stream, schema};
// }
// static void let_get_schema_fail(Stream* stream) { stream->get_schema = refuse_schema; }
// static void let_get_next_fail(Stream* stream) { stream->get_next = refuse_next; }
// static void let_text_be_bad(Stream* stream) { stream->get_last_error = bad_text; }
// static int released(void) { return g_released; }
import "C"

import (
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Schema is a live schema without children; its format lives for ever.
func Schema(format string) *abi.ArrowSchema {
	schema := new(abi.ArrowSchema)
	C.fill_schema((*C.struct_ArrowSchema)(unsafe.Pointer(schema)), C.CString(format))
	return schema
}

// Array is a live array without buffers.
func Array() *abi.ArrowDeviceArray {
	array := new(abi.ArrowDeviceArray)
	C.fill_array((*C.struct_ArrowDeviceArray)(unsafe.Pointer(array)))
	return array
}

// Stream is a live stream of such arrays without an end. Its get_last_error gives NULL.
func Stream() *abi.ArrowDeviceArrayStream {
	stream := new(abi.ArrowDeviceArrayStream)
	schema := C.calloc(1, C.sizeof_struct_ArrowSchema)
	C.fill_schema((*C.struct_ArrowSchema)(schema), C.CString("n"))
	C.fill_stream(inC(stream), (*C.struct_ArrowSchema)(schema))
	return stream
}

// LetGetSchemaFail makes get_schema fail with EIO.
func LetGetSchemaFail(stream *abi.ArrowDeviceArrayStream) { C.let_get_schema_fail(inC(stream)) }

// LetGetNextFail makes get_next fail with EIO.
func LetGetNextFail(stream *abi.ArrowDeviceArrayStream) { C.let_get_next_fail(inC(stream)) }

// LetTextBeBad makes get_last_error give a text that is no UTF-8.
func LetTextBeBad(stream *abi.ArrowDeviceArrayStream) { C.let_text_be_bad(inC(stream)) }

// Released is how many release callbacks of this package have run.
func Released() int { return int(C.released()) }

func inC(stream *abi.ArrowDeviceArrayStream) *C.Stream { return (*C.Stream)(unsafe.Pointer(stream)) }
