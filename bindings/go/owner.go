// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// raw is a struct with a release callback.
type raw interface {
	abi.ArrowSchema | abi.ArrowArray | abi.ArrowDeviceArray | abi.ArrowArrayStream | abi.ArrowDeviceArrayStream
}

// kind describes one struct type. release gets the struct in place: the address is not used afterwards, so the struct
// need not be copied.
type kind[R raw] struct {
	name     string
	number   int32   // in fletching/handover.h
	callback uintptr // the offset of the release callback
	release  func(*R) (called bool)
	slots    sync.Pool
}

func (k *kind[R]) callbackOf(raw *R) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(raw), k.callback))
}

func (k *kind[R]) isReleased(raw *R) bool { return *k.callbackOf(raw) == 0 }

var (
	schemaKind = kind[abi.ArrowSchema]{
		name: "schema", number: numberSchema, callback: unsafe.Offsetof(abi.ArrowSchema{}.Release), release: callbacks.CallArrowSchemaRelease,
	}
	arrayKind = kind[abi.ArrowArray]{
		name: "array", number: numberArray, callback: unsafe.Offsetof(abi.ArrowArray{}.Release), release: callArrayRelease,
	}
	deviceArrayKind = kind[abi.ArrowDeviceArray]{
		name: "device array", number: numberDeviceArray, callback: unsafe.Offsetof(abi.ArrowDeviceArray{}.Array) + unsafe.Offsetof(abi.ArrowArray{}.Release),
		release: func(raw *abi.ArrowDeviceArray) bool {
			if raw.Array.Release == releaseArray {
				return releaseBlock(&raw.Array)
			}
			return callbacks.CallArrowArrayRelease(&raw.Array) // called directly, because every leaf pays for a call
		},
	}
	arrayStreamKind = kind[abi.ArrowArrayStream]{
		name: "stream", number: numberStream, callback: unsafe.Offsetof(abi.ArrowArrayStream{}.Release), release: callbacks.CallArrowArrayStreamRelease,
	}
	deviceArrayStreamKind = kind[abi.ArrowDeviceArrayStream]{
		name: "device stream", number: numberDeviceStream, callback: unsafe.Offsetof(abi.ArrowDeviceArrayStream{}.Release),
		release: callbacks.CallArrowDeviceArrayStreamRelease,
	}
)

// slot contains one struct at a time and is reused, so that a cleanup is attached once per slot instead of
// once per struct. Only an owner refers to it. If an unclosed owner is garbage-collected, its slot is too,
// and the cleanup releases the struct.
type slot[R raw] struct {
	kind     *kind[R]
	raw      *R       // in Go memory without pointers
	callback *uintptr // the release callback of raw
	traced   bool
}

// newSlot returns a slot whose struct is released and otherwise undefined.
func newSlot[R raw](kind *kind[R]) *slot[R] {
	if pooled, _ := kind.slots.Get().(*slot[R]); pooled != nil && !traceOwners.Load() {
		return pooled
	}
	return makeSlot(kind)
}

func makeSlot[R raw](kind *kind[R]) *slot[R] {
	made := callers()
	room := new(R)
	s := &slot[R]{kind, room, kind.callbackOf(room), made != nil}
	runtime.AddCleanup(s, func(raw *R) { releaseLeaked(kind, raw, made) }, s.raw)
	return s
}

// emptySlot returns a slot with a zeroed struct for C to fill in.
func emptySlot[R raw](kind *kind[R]) *slot[R] {
	s := newSlot(kind)
	var zero R
	*s.raw = zero
	return s
}

// free returns a slot to the pool after its struct was released or moved. A traced slot is not reused, because its
// stack belongs to one owner.
func (s *slot[R]) free() {
	*s.callback = 0 // some callbacks do not reset it
	if !s.traced {
		s.kind.slots.Put(s)
	}
}

// owner owns a struct, unless it has no slot. It never gets a second slot, so code that refers to the
// owner cannot reach a reused slot.
//
// A copy of an owner, which go vet reports because of the atomic field, owns nothing: its self points to the original.
type owner[R raw] struct {
	slot atomic.Pointer[slot[R]]
	self *owner[R]
}

// hold sets the slot of a new owner.
func (o *owner[R]) hold(s *slot[R]) {
	o.self = o
	*(**slot[R])(unsafe.Pointer(&o.slot)) = s // no other goroutine can access the owner yet
}

// held returns nil if the owner is closed or a copy.
func (o *owner[R]) held() *slot[R] {
	if o.self != o {
		return nil
	}
	return o.slot.Load()
}

// leave removes and returns the slot.
func (o *owner[R]) leave() *slot[R] {
	if o.self != o {
		return nil
	}
	return o.slot.Swap(nil)
}

// get returns the struct, nil if the owner is closed.
func (o *owner[R]) get() *R {
	if s := o.held(); s != nil {
		return s.raw
	}
	return nil
}

// IsReleased reports whether the owner is empty: closed, exported or moved.
func (o *owner[R]) IsReleased() bool {
	s := o.held()
	return s == nil || *s.callback == 0
}

// Close releases the struct, in one C call, on the calling goroutine. It has no effect if the struct was
// closed, exported or moved before.
//
// Several goroutines may call Close at once. No other method may run at the same time.
func (o *owner[R]) Close() {
	if s := o.leave(); s != nil {
		s.kind.release(s.raw)
		s.free()
	}
}

// Export moves the struct to a C address, which is overwritten, and leaves the owner closed. The receiver
// must release the struct.
//
// Errors: EINVAL for nil, and if the owner is closed.
func (o *owner[R]) Export(address unsafe.Pointer) error {
	if s := o.held(); validates && s != nil {
		handOver(directionExport, s.kind.number, unsafe.Pointer(s.raw))
	}
	return o.moveTo(address)
}

// moveTo is Export for a callback of a stream, which is validated as a whole.
func (o *owner[R]) moveTo(address unsafe.Pointer) error {
	if address == nil {
		return invalid("Export: address is nil: expected room for a struct")
	}
	s, err := o.take("Export")
	if err != nil {
		return err
	}
	*(*R)(address) = *s.raw
	s.free()
	return nil
}

// take removes the slot for the caller, which must free it after moving the struct.
func (o *owner[R]) take(operation string) (*slot[R], error) {
	if o.IsReleased() {
		return nil, closed(operation)
	}
	if s := o.leave(); s != nil {
		return s, nil
	}
	return nil, closed(operation)
}

// fill sets the struct of a new owner.
func (o *owner[R]) fill(kind *kind[R], value R) {
	s := newSlot(kind)
	*s.raw = value
	o.hold(s)
}

// importInto moves the struct at the address into a new owner.
func importInto[R raw](operation string, o *owner[R], kind *kind[R], address unsafe.Pointer) error {
	if address == nil {
		return invalid("%s: %s is nil: expected an address", operation, kind.name)
	}
	source := (*R)(address)
	callback := kind.callbackOf(source)
	if *callback == 0 {
		return invalid("%s: %s is released: expected a live struct", operation, kind.name)
	}
	s, _ := kind.slots.Get().(*slot[R]) // newSlot inlined, without a copy of the struct: every leaf pays for both
	if s == nil || traceOwners.Load() {
		s = makeSlot(kind)
	}
	*s.raw = *source
	*callback = 0 // a move changes only the release callback of the source
	if validates {
		handOver(directionImport, kind.number, unsafe.Pointer(s.raw))
	}
	o.hold(s)
	return nil
}

// --- Leaks --------------------------------------------------------------------------------------

// Leak is an owner that was garbage-collected without a Close.
type Leak struct {
	// Struct is the kind of the struct, such as "device array".
	Struct string

	// Stack lists the calls that created the owner, innermost first, with a line for the function and a line for
	// its location. It is empty unless TraceOwners was on at that time.
	Stack string
}

var (
	leaks       atomic.Uint64
	onLeak      atomic.Pointer[func(Leak)]
	traceOwners atomic.Bool
)

// Leaks returns the number of owners that were garbage-collected without a Close. The garbage collector
// releases their structs at an unknown time, so device memory is freed late.
func Leaks() uint64 { return leaks.Load() }

// OnLeak makes this package call report for every leak, after the release, on a separate goroutine. nil removes
// the function.
func OnLeak(report func(Leak)) { onLeak.Store(&report) }

// TraceOwners sets whether owners created afterwards record their creation for a Leak, which costs a stack walk
// for each owner.
func TraceOwners(on bool) { traceOwners.Store(on) }

// callers returns the stack at which an owner is created, or nil if tracing is off.
func callers() []uintptr {
	if !traceOwners.Load() {
		return nil
	}
	const most, ours = 32, 3 // skips runtime.Callers, this function and its caller
	counters := make([]uintptr, most)
	return counters[:runtime.Callers(ours, counters)]
}

func stackText(counters []uintptr) string {
	var text strings.Builder
	frames := runtime.CallersFrames(counters)
	for more := len(counters) > 0; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		fmt.Fprintf(&text, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
	}
	return text.String()
}

// room limits the number of goroutines whose callbacks may each block a thread.
type room chan struct{}

const mostReleases = 64 // as in the core

// enter runs the body on a new goroutine when there is room.
func (r room) enter(body func()) {
	go func() {
		r <- struct{}{}
		defer func() { <-r }()
		body()
	}()
}

var leakedReleases = make(room, mostReleases)

// releaseLeaked runs on a goroutine of the runtime's cleanups, which a blocking release would stall.
func releaseLeaked[R raw](kind *kind[R], raw *R, made []uintptr) {
	if kind.isReleased(raw) {
		return
	}
	leaks.Add(1)
	leakedReleases.enter(func() {
		kind.release(raw)
		reportLeak(kind.name, made)
	})
}

func reportLeak(what string, made []uintptr) {
	if report := onLeak.Load(); report != nil && *report != nil {
		_ = guarded(func() error {
			(*report)(Leak{what, stackText(made)})
			return nil
		})
	}
}
