// Package producer calls the reference producer, a library that it opens at run time
// (cpp/producer/producer.h and gate.h).
package producer

// #cgo CFLAGS: -I${SRCDIR}/../../internal/forward -I${SRCDIR}/../../../../cpp/include -I${SRCDIR}/../../../../cpp/producer
// #cgo linux LDFLAGS: -ldl
// #include "library.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// Counters is struct FletchingProducerCounters.
type Counters struct {
	LiveAllocations, LiveSchemas, LiveArrays, LiveStreams int64
	Exported, Released, DoubleReleased                    int64
}

// Path is the path of a library of this repository: in FLETCHING_LIB_DIR, else in build/lib of the
// repository that the working directory is in.
func Path(library string) string {
	name := "lib" + library + ".so"
	if runtime.GOOS == "darwin" {
		name = "lib" + library + ".dylib"
	}
	if folder := os.Getenv("FLETCHING_LIB_DIR"); folder != "" {
		return filepath.Join(folder, name)
	}
	return filepath.Join(repository(), "build", "lib", name)
}

// repository is the nearest folder above the working directory that contains the spec, else ".".
func repository() string {
	folder, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(folder, "spec", "project.yaml")); missing == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder)
	}
	return "."
}

// Open loads the library; call it before anything else.
func Open() error {
	path := Path("fletching_producer")
	if problem := C.fletching_go_producer_open(text(path)); problem != nil {
		return fmt.Errorf("cannot use the producer %s: %s; hint: run `make`, or set FLETCHING_LIB_DIR", path, C.GoString(problem))
	}
	return nil
}

// Backends returns the names of the backends.
func Backends() []string {
	var names []string
	for i := range C.fletching_go_producer_BackendCount() {
		names = append(names, C.GoString(C.fletching_go_producer_BackendName(i)))
	}
	return names
}

// Cases returns the names of the cases.
func Cases() []string {
	var names []string
	for i := range C.fletching_go_producer_CaseCount() {
		names = append(names, C.GoString(C.fletching_go_producer_CaseName(i)))
	}
	return names
}

// VerifyDump returns how many lines are as the producer exported them: all.
func VerifyDump(dump string) (int64, error) {
	var lines C.int64_t
	err := call(func(message *C.Message) C.int {
		return C.fletching_go_producer_VerifyDump(text(dump), &lines, message)
	})
	return int64(lines), err
}

// ExportArray fills schema and array.
func ExportArray(backend, name string, schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) error {
	return call(func(message *C.Message) C.int {
		return C.fletching_go_producer_ExportArray(text(backend), text(name), cSchema(schema), cArray(array), message)
	})
}

// ExportStream fills stream, which fails before batch failAt, or never when that is -1.
func ExportStream(backend, name string, batches, failAt int64, stream *abi.ArrowDeviceArrayStream) error {
	return call(func(message *C.Message) C.int {
		return C.fletching_go_producer_ExportStream(text(backend), text(name), C.int64_t(batches), C.int64_t(failAt), cStream(stream), message)
	})
}

// VerifyArray compares with the catalogue, and releases nothing.
func VerifyArray(backend, name string, schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) error {
	return call(func(message *C.Message) C.int {
		return C.fletching_go_producer_VerifyArray(text(backend), text(name), cSchema(schema), cArray(array), message)
	})
}

// VerifyStream pulls, compares and releases; the stream is moved in whatever it returns.
func VerifyStream(backend, name string, batches, failAt int64, stream *abi.ArrowDeviceArrayStream) error {
	return call(func(message *C.Message) C.int {
		return C.fletching_go_producer_VerifyStream(text(backend), text(name), C.int64_t(batches), C.int64_t(failAt), cStream(stream), message)
	})
}

// ReadCounters returns what is alive, and what happened since ResetCounters.
func ReadCounters() Counters {
	var c C.struct_FletchingProducerCounters
	C.fletching_go_producer_ReadCounters(&c)
	return Counters{
		LiveAllocations: int64(c.live_allocations), LiveSchemas: int64(c.live_schemas),
		LiveArrays: int64(c.live_arrays), LiveStreams: int64(c.live_streams),
		Exported: int64(c.exported), Released: int64(c.released), DoubleReleased: int64(c.double_released),
	}
}

// ResetCounters sets what happened to 0.
func ResetCounters() {
	C.fletching_go_producer_ResetCounters()
}

func call(run func(*C.Message) C.int) error {
	var message C.Message
	if code := run(&message); code != 0 {
		return fletching.NewError(syscall.Errno(code), C.GoString(&message.text[0]), nil)
	}
	return nil
}

// text is a NUL-terminated copy in Go memory, for the length of a call.
func text(s string) *C.char {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s + "\x00")))
}

func cSchema(s *abi.ArrowSchema) *C.Schema            { return (*C.Schema)(unsafe.Pointer(s)) }
func cArray(a *abi.ArrowDeviceArray) *C.Array         { return (*C.Array)(unsafe.Pointer(a)) }
func cStream(s *abi.ArrowDeviceArrayStream) *C.Stream { return (*C.Stream)(unsafe.Pointer(s)) }
