package main

// #cgo CFLAGS: -I${SRCDIR}/../../../../tests/roundtrip
// #include <dlfcn.h>
//
// #include "transit.h"
//
// typedef __typeof__(FletchingTransitArray) Array;
// typedef __typeof__(FletchingTransitExported) Count;
//
// static int transit(void* function, void* schema, void* array, void* out_schema, void* out_array,
//                    char* message, size_t capacity) {
//   return ((Array*)function)(schema, array, out_schema, out_array, message, capacity);
// }
// static int64_t count(void* function) { return ((Count*)function)(); }
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
)

// hop is a language that data passes through inside this process.
type hop struct {
	language           string
	transit            func(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray, outSchema *abi.ArrowSchema, outArray *abi.ArrowDeviceArray) error
	exported, released func() int64
}

// loadHops returns the languages that FLETCHING_CHAIN names, such as "cpp go rust". There is one Go runtime in a
// process: Go is this program and no library.
var loadHops = sync.OnceValues(func() ([]hop, error) {
	var hops []hop
	for _, language := range strings.Fields(os.Getenv("FLETCHING_CHAIN")) {
		if language == "go" {
			hops = append(hops, hop{language, reexport.Structs, reexport.Exported, reexport.Released})
			continue
		}
		loaded, err := loadHop(language)
		if err != nil {
			return nil, err
		}
		hops = append(hops, loaded)
	}
	if len(hops) == 0 {
		return nil, errors.New(`FLETCHING_CHAIN: names no language: expected "cpp ..."`)
	}
	return hops, nil
})

// loadHop opens libfletching_transit_LANGUAGE, which is never closed.
func loadHop(language string) (hop, error) {
	path := producer.Path("fletching_transit_" + language)
	library := C.dlopen(C.CString(path), C.RTLD_NOW|C.RTLD_LOCAL)
	if library == nil {
		return hop{}, errors.New(C.GoString(C.dlerror()))
	}
	functions := make(map[string]unsafe.Pointer)
	for _, name := range []string{"Array", "Exported", "Released"} {
		function := C.dlsym(library, C.CString("FletchingTransit"+name))
		if function == nil {
			return hop{}, errors.New(C.GoString(C.dlerror()))
		}
		functions[name] = function
	}
	counter := func(name string) func() int64 {
		return func() int64 { return int64(C.count(functions[name])) }
	}
	transit := func(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray, outSchema *abi.ArrowSchema, outArray *abi.ArrowDeviceArray) error {
		var message [1024]C.char
		code := C.transit(functions["Array"], unsafe.Pointer(schema), unsafe.Pointer(array), unsafe.Pointer(outSchema),
			unsafe.Pointer(outArray), &message[0], C.size_t(len(message)))
		if code != 0 {
			return fletching.NewError(syscall.Errno(code), C.GoString(&message[0]), nil)
		}
		return nil
	}
	return hop{language, transit, counter("Exported"), counter("Released")}, nil
}

// send moves both in, and replaces them by the result under the language's own release.
func (h *hop) send(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) error {
	var outSchema abi.ArrowSchema
	var outArray abi.ArrowDeviceArray
	if err := h.transit(schema, array, &outSchema, &outArray); err != nil {
		return fmt.Errorf("%s: %w", h.language, err)
	}
	if !schema.IsReleased() || !array.IsReleased() {
		return fmt.Errorf("%s: the structs were not moved in", h.language)
	}
	*schema, *array = outSchema, outArray
	return nil
}
