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

// kind is what differs between the structs. The release gets the struct where it is: it is not used at its old address
// afterwards, so it is not copied.
type kind[R raw] struct {
	name     string
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
		name: "schema", callback: unsafe.Offsetof(abi.ArrowSchema{}.Release), release: callbacks.CallArrowSchemaRelease,
	}
	arrayKind = kind[abi.ArrowArray]{
		name: "array", callback: unsafe.Offsetof(abi.ArrowArray{}.Release), release: callArrayRelease,
	}
	deviceArrayKind = kind[abi.ArrowDeviceArray]{
		name: "device array", callback: unsafe.Offsetof(abi.ArrowDeviceArray{}.Array) + unsafe.Offsetof(abi.ArrowArray{}.Release),
		release: func(raw *abi.ArrowDeviceArray) bool {
			if raw.Array.Release == releaseArray {
				return releaseBlock(&raw.Array)
			}
			return callbacks.CallArrowArrayRelease(&raw.Array) // without a further call: every leaf pays for it
		},
	}
	arrayStreamKind = kind[abi.ArrowArrayStream]{
		name: "stream", callback: unsafe.Offsetof(abi.ArrowArrayStream{}.Release), release: callbacks.CallArrowArrayStreamRelease,
	}
	deviceArrayStreamKind = kind[abi.ArrowDeviceArrayStream]{
		name: "device stream", callback: unsafe.Offsetof(abi.ArrowDeviceArrayStream{}.Release),
		release: callbacks.CallArrowDeviceArrayStreamRelease,
	}
)

// slot has one struct at a time and is used again: a cleanup is attached once and not for each
// struct. Only an owner refers to it. When an owner is collected that was not closed, its slot is
// too, and the cleanup releases the struct.
type slot[R raw] struct {
	kind     *kind[R]
	raw      *R       // memory of Go that has no pointers in it
	callback *uintptr // its release
	traced   bool
}

// newSlot returns one whose struct is released and has any other values.
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

// emptySlot returns one with a zero struct, which C fills.
func emptySlot[R raw](kind *kind[R]) *slot[R] {
	s := newSlot(kind)
	var zero R
	*s.raw = zero
	return s
}

// free returns a slot whose struct was released or moved. The stack of a traced slot is that of one owner.
func (s *slot[R]) free() {
	*s.callback = 0 // not every callback does that
	if !s.traced {
		s.kind.slots.Put(s)
	}
}

// owner owns a struct, unless it has no slot. It never gets a second slot, so no code that
// refers to the owner reaches a slot that is used again.
//
// A copy of an owner, which go vet reports because of the atomic field, owns nothing: its self is another one.
type owner[R raw] struct {
	slot atomic.Pointer[slot[R]]
	self *owner[R]
}

// hold gives a new owner its slot.
func (o *owner[R]) hold(s *slot[R]) {
	o.self = o
	*(**slot[R])(unsafe.Pointer(&o.slot)) = s // no other goroutine has the owner yet
}

// held is nil for an owner that was closed, and for a copy.
func (o *owner[R]) held() *slot[R] {
	if o.self != o {
		return nil
	}
	return o.slot.Load()
}

// leave takes the slot out.
func (o *owner[R]) leave() *slot[R] {
	if o.self != o {
		return nil
	}
	return o.slot.Swap(nil)
}

// get is the struct, and nil for an owner that was closed.
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

// Close releases the struct, in one call of C, on the calling goroutine. It does nothing when the
// struct was closed, exported or moved before.
//
// Several goroutines may call it at once. No other method may run at the same time.
func (o *owner[R]) Close() {
	if s := o.leave(); s != nil {
		s.kind.release(s.raw)
		s.free()
	}
}

// Export moves the struct to an address in C, which is overwritten. It is the receiver's to release
// from now on; the owner is closed.
//
// Errors: EINVAL for nil, and for an owner that was closed.
func (o *owner[R]) Export(address unsafe.Pointer) error {
	if address == nil {
		return invalid("export: address is nil: expected room for a struct")
	}
	s, err := o.take("export")
	if err != nil {
		return err
	}
	*(*R)(address) = *s.raw
	s.free()
	return nil
}

// take makes the slot the caller's, who frees it when the struct was moved.
func (o *owner[R]) take(operation string) (*slot[R], error) {
	if o.IsReleased() {
		return nil, closed(operation)
	}
	if s := o.leave(); s != nil {
		return s, nil
	}
	return nil, closed(operation)
}

// fill gives a new owner its struct.
func (o *owner[R]) fill(kind *kind[R], value R) {
	s := newSlot(kind)
	*s.raw = value
	o.hold(s)
}

// importInto moves the struct at the address into a new owner.
func importInto[R raw](o *owner[R], kind *kind[R], address unsafe.Pointer) error {
	if address == nil {
		return invalid("import: %s is nil: expected an address", kind.name)
	}
	source := (*R)(address)
	callback := kind.callbackOf(source)
	if *callback == 0 {
		return invalid("import: %s is released: expected a live struct", kind.name)
	}
	s, _ := kind.slots.Get().(*slot[R]) // newSlot, and no copy of the struct: every leaf pays for both
	if s == nil || traceOwners.Load() {
		s = makeSlot(kind)
	}
	*s.raw = *source
	*callback = 0 // a move changes only the callback of the source
	o.hold(s)
	return nil
}

// --- Leaks --------------------------------------------------------------------------------------

// Leak is an owner that was collected and had not been closed.
type Leak struct {
	// Struct is the kind of the struct: "device array".
	Struct string

	// Stack has the calls that made the owner, the innermost first: a line with the function and one with the
	// place. Empty unless TraceOwners was on then.
	Stack string
}

var (
	leaks       atomic.Uint64
	onLeak      atomic.Pointer[func(Leak)]
	traceOwners atomic.Bool
)

// Leaks returns how many owners were collected that had not been closed. The garbage collector
// releases their structs, at an unknown time, and so memory of a device lives too long.
func Leaks() uint64 { return leaks.Load() }

// OnLeak calls report for every leak, after the release, on a goroutine of this package. nil ends
// that.
func OnLeak(report func(Leak)) { onLeak.Store(&report) }

// TraceOwners makes a Leak say where the owner was made, for owners that are made from now on. Then each of them costs
// a walk through the stack.
func TraceOwners(on bool) { traceOwners.Store(on) }

// callers is the stack of who makes an owner; nil unless that is traced.
func callers() []uintptr {
	if !traceOwners.Load() {
		return nil
	}
	const most, ours = 32, 3 // runtime.Callers, this function and its caller
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

// A room limits the goroutines whose callbacks may each block a thread.
type room chan struct{}

const mostReleases = 64 // as in the core

// enter runs the body on a new goroutine, when there is room.
func (r room) enter(body func()) {
	go func() {
		r <- struct{}{}
		defer func() { <-r }()
		body()
	}()
}

var leakedReleases = make(room, mostReleases)

// releaseLeaked runs on a goroutine of the runtime that runs cleanups, which a release that blocks would stall.
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
