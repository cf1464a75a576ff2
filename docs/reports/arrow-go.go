// Shows an error of arrow-go, without Fletching.
//
// In a folder whose go.mod has arrow-go: go run arrow-go.go KIND
//
// KIND: views, children, schema-refused, map, released.
package main

/*
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
struct ArrowAsyncProducer {
  int32_t device_type;
  void *request, *cancel;
  const char* additional_metadata;
  void* private_data;
};
struct ArrowAsyncDeviceStreamHandler {
  int (*on_schema)(struct ArrowAsyncDeviceStreamHandler*, struct ArrowSchema*);
  void *on_next_task, *on_error;
  void (*release)(struct ArrowAsyncDeviceStreamHandler*);
  struct ArrowAsyncProducer* producer;
  void* private_data;
};

static size_t allocated(void) { return mallinfo2().uordblks; }

int released_children;
static void release_child(struct ArrowSchema* child) {
  ++released_children;
  child->release = NULL;
}
static void release_parent(struct ArrowSchema* parent) {
  // The parent releases its children here. A call of release_child before is the consumer's.
  parent->release = NULL;
}
static struct ArrowSchema child = {.format = "i", .name = "a", .release = release_child};
static struct ArrowSchema* children[] = {&child};
struct ArrowSchema parent = {
    .format = "+s", .n_children = 1, .children = children, .release = release_parent};
struct ArrowSchema number = {.format = "i", .release = release_parent};

static struct ArrowAsyncProducer producer = {.device_type = 1};
static int refuse(struct ArrowAsyncDeviceStreamHandler* handler) {
  handler->producer = &producer;
  int code = handler->on_schema(handler, &number);
  handler->release(handler);
  return code;
}

static uint8_t bits[8] = {255};
static void add_bitmap(struct ArrowArray* array) {
  array->buffers[0] = bits;
  array->null_count = -1;
}
static void add_bitmaps(struct ArrowArray* map) {
  add_bitmap(map->children[0]);
  add_bitmap(map->children[0]->children[0]);
}
*/
import "C"

import (
	"context"
	"fmt"
	"os"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
)

var allocator = mallocator.NewMallocator()

// views exports and releases an array of string views many times.
func views() bool {
	builder := array.NewStringViewBuilder(allocator)
	builder.Append("longer than twelve bytes")
	built := builder.NewArray()
	const calls = 10000
	before := C.allocated()
	for range calls {
		var out cdata.CArrowArray
		cdata.ExportArrowArray(built, &out, nil)
		cdata.ReleaseCArrowArray(&out)
	}
	each := int(C.allocated()-before) / calls
	fmt.Println("bytes of C memory left by each export:", each)
	return each == 0
}

// children imports a schema with a child.
func children() bool {
	_, err := cdata.ImportCArrowField((*cdata.CArrowSchema)(unsafe.Pointer(&C.parent)))
	fmt.Println("calls of a child's release by the consumer:", C.released_children, err)
	return C.released_children == 0
}

// refuse sends a schema that is not a struct to the handler, and then releases the handler.
func refuse() bool {
	handler := new(cdata.CArrowAsyncDeviceStreamHandler)
	streams := cdata.CreateAsyncDeviceStreamHandler(context.Background(), 1, handler)
	go func() { fmt.Println((<-streams).Err) }()
	given := (*C.struct_ArrowAsyncDeviceStreamHandler)(unsafe.Pointer(handler))
	fmt.Println("on_schema:", C.refuse(given))
	return true
}

// importMap imports a map whose entries and keys have a validity bitmap without a null.
func importMap() bool {
	builder := array.NewMapBuilder(allocator, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32, false)
	builder.Append(true)
	builder.KeyBuilder().(*array.StringBuilder).Append("key")
	builder.ItemBuilder().(*array.Int32Builder).Append(1)
	var schema cdata.CArrowSchema
	var out cdata.CArrowArray
	cdata.ExportArrowArray(builder.NewArray(), &out, &schema)
	C.add_bitmaps((*C.struct_ArrowArray)(unsafe.Pointer(&out)))
	_, imported, err := cdata.ImportCArray(&out, &schema)
	fmt.Println(imported, err)
	return err == nil
}

// importReleased imports a released array: a broken one.
func importReleased() bool {
	schema := (*cdata.CArrowSchema)(unsafe.Pointer(&C.number))
	_, _, err := cdata.ImportCArray(new(cdata.CArrowArray), schema)
	return err != nil
}

func main() {
	kinds := map[string]func() bool{
		"views": views, "children": children, "schema-refused": refuse, "map": importMap, "released": importReleased,
	}
	if len(os.Args) != 2 || kinds[os.Args[1]] == nil {
		fmt.Println("expected one of views, children, schema-refused, map, released")
		os.Exit(2)
	}
	if !kinds[os.Args[1]]() {
		os.Exit(1)
	}
}
