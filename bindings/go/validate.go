// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include <stdlib.h>
// #include "validate.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Finding is a broken rule.
type Finding struct {
	Rule     string // the id of the rule, such as "stream.callbacks-set"
	Severity string // "error", "warning" or "note"
	Party    string // the party that broke the rule: "producer", "consumer", or "both" if unknown
	Path     string // the struct, such as "get_next[2].array.children[1]"
	Message  string // the expected and the actual value
	History  string // the last calls on a stream with their results, one per line
}

// String returns the path, the message and the rule.
func (f Finding) String() string { return fmt.Sprintf("%s: %s (rule %s)", f.Path, f.Message, f.Rule) }

// ValidationLevel selects the checks. Each level includes the previous ones.
type ValidationLevel int32

const (
	// ValidateProtocol checks the order of the calls on a stream. For an array it is equivalent to
	// ValidateShape.
	ValidateProtocol ValidationLevel = iota

	// ValidateShape checks the members of schemas and arrays, and each array against its schema. It
	// does not read buffers.
	ValidateShape

	// ValidateData also reads the buffers in host-readable memory, after waiting for the array's event.
	// A failed wait is the finding "limit.event". Other device memory is never read. A buffer that is
	// shorter than the structs and the offsets say is read past its end.
	ValidateData
)

// Stress is unusual behavior that the rules allow. It reveals faults of a peer that relies on the usual
// behavior. A peer that breaks a rule may crash.
type Stress uint32

const (
	// StressPoison overwrites released structs, and strings and metadata after their lifetime.
	StressPoison Stress = 1 << iota

	// StressMove moves structs to other addresses. A later write to the old address is a finding.
	StressMove

	// StressPrivateData sets private_data to a value that is not an address.
	StressPrivateData

	// StressThread runs the producer's release callbacks on another thread.
	StressThread

	// StressDelay runs the producer's release callbacks after the next call on the stream.
	StressDelay
)

func united(stress []Stress) C.uint32_t {
	var all Stress
	for _, each := range stress {
		all |= each
	}
	return C.uint32_t(all)
}

// Check compares an array with its schema. It returns at most 64 findings, plus one for a failed
// wait. A correct array has none.
//
// The validation layer is in libfletching, which the first call loads from the path in the environment
// variable FLETCHING_LIBRARY if it is set, or otherwise by the library's name. The library stays loaded.
// After a failure the next call tries to load it again.
//
// Errors: ENOENT if the library is not found, ENOSYS if it lacks a function, EINVAL if it was built with
// another struct layout; EINVAL for a nil or closed owner, and for an unknown level; ENOMEM.
func (a *Array) Check(schema *Schema, level ValidationLevel) ([]Finding, error) {
	if a == nil || a.IsReleased() {
		return nil, closed("Check")
	}
	defer runtime.KeepAlive(a)
	return check(schema, func(schema *C.struct_ArrowSchema, findings *C.struct_FletchingGoFindings, message *C.struct_FletchingMessage) C.int {
		array := (*C.struct_ArrowArray)(unsafe.Pointer(a.get()))
		return C.fletching_validate_array(schema, array, C.int32_t(level), findings, message)
	})
}

// Check compares an array with its schema; see Array.Check.
func (a *DeviceArray) Check(schema *Schema, level ValidationLevel) ([]Finding, error) {
	if a == nil || a.IsReleased() {
		return nil, closed("Check")
	}
	defer runtime.KeepAlive(a)
	return check(schema, func(schema *C.struct_ArrowSchema, findings *C.struct_FletchingGoFindings, message *C.struct_FletchingMessage) C.int {
		return C.fletching_validate_device_array(schema, cDeviceArray(a.get()), C.int32_t(level), findings, message)
	})
}

func check(schema *Schema, call func(*C.struct_ArrowSchema, *C.struct_FletchingGoFindings, *C.struct_FletchingMessage) C.int) ([]Finding, error) {
	if schema == nil || schema.IsReleased() {
		return nil, invalid("Check: schema is nil or closed: expected a schema")
	}
	defer runtime.KeepAlive(schema)
	findings, err := newFindings("Check")
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(findings.list))
	var message C.struct_FletchingMessage
	code := call((*C.struct_ArrowSchema)(unsafe.Pointer(schema.get())), findings.list, &message)
	return findings.Take(), validationError("Check", code, &message)
}

// Findings collects the findings of a validated stream. It may be used concurrently from any goroutine.
type Findings struct {
	list *C.struct_FletchingGoFindings
}

// newFindings loads the library first.
func newFindings(operation string) (Findings, error) {
	if err := loadValidation(operation); err != nil {
		return Findings{}, err
	}
	list := C.fletching_findings_new()
	if list == nil {
		return Findings{}, noMemory(operation)
	}
	return Findings{list}, nil
}

// Take returns the findings since the last call, oldest first. If there is no memory, findings are lost.
func (f Findings) Take() []Finding {
	var taken []Finding
	if f.list == nil {
		return nil
	}
	for found := C.fletching_findings_take(f.list); found != nil; found = C.fletching_finding_free(found) {
		text := func(i int) string { return C.GoString(found.texts[i]) }
		taken = append(taken, Finding{text(0), text(1), text(2), text(3), text(4), text(5)})
	}
	slices.Reverse(taken)
	return taken
}

// Validate wraps the stream in the validation layer, which validates and forwards every later call. Schemas
// and batches that outlive the stream also report findings, so the list of findings, some bytes, is never
// freed.
//
// Errors: as for Array.Check; EBUSY during another call. An error leaves the stream unchanged.
func (s *ArrayStream) Validate(level ValidationLevel, stress ...Stress) (Findings, error) {
	return validate(&s.stream, func(raw *abi.ArrowArrayStream, findings *C.struct_FletchingGoFindings, message *C.struct_FletchingMessage) C.int {
		stream := (*C.struct_ArrowArrayStream)(unsafe.Pointer(raw))
		return C.fletching_validate_stream(stream, C.int32_t(level), united(stress), findings, message)
	})
}

// Validate wraps the stream in the validation layer; see ArrayStream.Validate.
func (s *DeviceArrayStream) Validate(level ValidationLevel, stress ...Stress) (Findings, error) {
	return validate(&s.stream, func(raw *abi.ArrowDeviceArrayStream, findings *C.struct_FletchingGoFindings, message *C.struct_FletchingMessage) C.int {
		stream := (*C.struct_ArrowDeviceArrayStream)(unsafe.Pointer(raw))
		return C.fletching_validate_device_stream(stream, C.int32_t(level), united(stress), findings, message)
	})
}

// ValidateHandler wraps a consumer's handler for an async stream, such as AsyncStream.Handler, in the
// validation layer. Pass the returned handler to the producer. It validates every call of the producer
// and, through the producer object that it passes to the consumer, every call of the consumer. Its release
// calls the release of the consumer's handler, which must not be released in another way.
//
// Errors: as for Array.Check. An error leaves the handler unchanged.
func ValidateHandler(handler unsafe.Pointer, level ValidationLevel, stress ...Stress) (unsafe.Pointer, Findings, error) {
	const operation = "ValidateHandler"
	findings, err := newFindings(operation)
	if err != nil {
		return nil, Findings{}, err
	}
	var message C.struct_FletchingMessage
	raw := (*C.struct_ArrowAsyncDeviceStreamHandler)(handler)
	code := C.fletching_validate_handler(&raw, C.int32_t(level), united(stress), findings.list, &message)
	if err := validationError(operation, code, &message); err != nil {
		C.free(unsafe.Pointer(findings.list))
		return nil, Findings{}, err
	}
	return unsafe.Pointer(raw), findings, nil
}

func validate[S, B raw](s *stream[S, B], call func(*S, *C.struct_FletchingGoFindings, *C.struct_FletchingMessage) C.int) (Findings, error) {
	const operation = "Validate"
	findings, err := newFindings(operation)
	if err != nil {
		return Findings{}, err
	}
	err = s.lend(operation, func(raw *S) error {
		var message C.struct_FletchingMessage
		code := call(raw, findings.list, &message)
		return validationError(operation, code, &message)
	})
	if err != nil {
		C.free(unsafe.Pointer(findings.list))
		return Findings{}, err
	}
	return findings, nil
}

// ReportLive adds every unreleased schema, batch, handler and task of the validated streams to the findings
// of its stream and returns their number. Call it when the consumer is done.
//
// Errors: as for Array.Check.
func ReportLive() (int64, error) {
	const operation = "ReportLive"
	if err := loadValidation(operation); err != nil {
		return 0, err
	}
	live := int64(C.fletching_validate_live())
	if live < 0 {
		return 0, noMemory(operation)
	}
	return live, nil
}

func validationError(operation string, code C.int, message *C.struct_FletchingMessage) error {
	if code == 0 {
		return nil
	}
	return NewError(abi.SystemError(int32(code)), operation+": "+C.GoString(&message.text[0]), nil)
}

// --- The library --------------------------------------------------------------------------------

var validation struct {
	sync.Mutex
	loaded bool
}

func loadValidation(operation string) error {
	validation.Lock()
	defer validation.Unlock()
	if validation.loaded {
		return nil
	}
	err := loadAny(operation, validationLibraries(os.Getenv("FLETCHING_LIBRARY")))
	validation.loaded = err == nil
	return err
}

// validationLibraries returns the library's names, in the order of the attempts.
func validationLibraries(path string) []string {
	switch {
	case path != "":
		return []string{path}
	case runtime.GOOS == "windows":
		return []string{"fletching.dll"}
	case runtime.GOOS == "darwin":
		return []string{"libfletching.0.1.dylib", "libfletching.dylib"}
	}
	return []string{"libfletching.so.0.1", "libfletching.so"}
}

// loadAny loads the first library that is found.
func loadAny(operation string, names []string) error {
	reasons := make([]string, 0, len(names))
	for _, name := range names {
		code, text := load(name, C.FLETCHING_LAYOUT)
		if code == 0 {
			return nil
		}
		if code != syscall.ENOENT {
			return NewError(code, operation+": "+text, nil)
		}
		reasons = append(reasons, text)
	}
	return NewError(syscall.ENOENT, operation+": cannot load libfletching: "+strings.Join(reasons, "; ")+
		"; hint: install it, add its folder to the library search path, or set FLETCHING_LIBRARY to its path", nil)
}

func load(name string, layout C.uint64_t) (syscall.Errno, string) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var message C.struct_FletchingMessage
	code := C.fletching_validate_load(text, layout, &message)
	return abi.SystemError(int32(code)), C.GoString(&message.text[0])
}
