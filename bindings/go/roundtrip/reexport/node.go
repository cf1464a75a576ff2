// Package reexport hands foreign structs on as its own: the same data under release callbacks in Go,
// which release what was moved in.
//
// What C sees of a struct stands in pinned Go memory or in the caller's; private_data is a
// cgo.Handle, a number. Nothing panics into C.
package reexport

// #include <stdint.h>
//
// extern void fletching_go_release_schema(uintptr_t);
// extern void fletching_go_release_array(uintptr_t);
import "C"

import (
	"fmt"
	"runtime"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

var exported, released atomic.Int64

// Exported is how many structs this package has filled, children and dictionaries included.
func Exported() int64 { return exported.Load() }

// Released is how many of its release callbacks have run.
func Released() int64 { return released.Load() }

// Schema moves a schema in and fills out. On an error nothing is changed.
func Schema(source, out *abi.ArrowSchema) error {
	if err := walk.CheckSchema(source); err != nil {
		return err
	}
	adoptSchema(source, out)
	return nil
}

// Array moves an array that fits the schema in and fills out. On an error nothing is changed.
func Array(schema *abi.ArrowSchema, source, out *abi.ArrowDeviceArray) error {
	if err := walk.Check(schema, &source.Array); err != nil {
		return err
	}
	filled := *source
	filled.Reserved = [len(filled.Reserved)]int64{}
	adoptArray(&source.Array, &filled.Array)
	*out = filled
	return nil
}

// node is what stands behind one struct of ours. T is abi.ArrowSchema or abi.ArrowArray.
type node[T any] struct {
	source     *T        // moved in; its children are in nodes of their own
	children   []T       // ours, as the consumer sees them
	list       []uintptr // their addresses
	dictionary *T
	pinner     runtime.Pinner
}

func adoptSchema(source, out *abi.ArrowSchema) {
	n := &node[abi.ArrowSchema]{source: new(*source)}
	filled := *source
	n.addChildren(walk.SchemaChildren(source), &filled.Children, adoptSchema)
	n.addDictionary((*abi.ArrowSchema)(abi.Pointer(source.Dictionary)), &filled.Dictionary, adoptSchema)
	source.Release = 0
	filled.Release = abi.ArrowSchemaReleaseFunc(uintptr(C.fletching_go_release_schema))
	filled.PrivateData = uintptr(cgo.NewHandle(n))
	*out = filled
	exported.Add(1)
}

func adoptArray(source, out *abi.ArrowArray) {
	n := &node[abi.ArrowArray]{source: new(*source)}
	filled := *source
	n.addChildren(walk.ArrayChildren(source), &filled.Children, adoptArray)
	n.addDictionary((*abi.ArrowArray)(abi.Pointer(source.Dictionary)), &filled.Dictionary, adoptArray)
	source.Release = 0
	filled.Release = abi.ArrowArrayReleaseFunc(uintptr(C.fletching_go_release_array))
	filled.PrivateData = uintptr(cgo.NewHandle(n))
	*out = filled
	exported.Add(1)
}

func (n *node[T]) addChildren(sources []*T, field *uintptr, adopt func(source, out *T)) {
	if len(sources) == 0 {
		return
	}
	n.children = make([]T, len(sources))
	n.list = make([]uintptr, len(sources))
	n.pinner.Pin(&n.children[0])
	n.pinner.Pin(&n.list[0])
	for i, source := range sources {
		adopt(source, &n.children[i])
		n.list[i] = uintptr(unsafe.Pointer(&n.children[i]))
	}
	*field = uintptr(unsafe.Pointer(&n.list[0]))
}

func (n *node[T]) addDictionary(source *T, field *uintptr, adopt func(source, out *T)) {
	if source == nil {
		return
	}
	n.dictionary = new(T)
	n.pinner.Pin(n.dictionary)
	adopt(source, n.dictionary)
	*field = uintptr(unsafe.Pointer(n.dictionary))
}

// free releases what the consumer has not moved out, then what was moved in.
func (n *node[T]) free(release func(*T)) {
	for i := range n.children {
		release(&n.children[i])
	}
	if n.dictionary != nil {
		release(n.dictionary)
	}
	release(n.source)
	n.pinner.Unpin()
	released.Add(1)
}

//export fletching_go_release_schema
func fletching_go_release_schema(self C.uintptr_t) {
	defer recovered("ArrowSchema.release")
	schema := (*abi.ArrowSchema)(abi.Pointer(uintptr(self)))
	n := take[*node[abi.ArrowSchema]](schema.PrivateData)
	schema.Release = 0
	n.free(ReleaseSchema)
}

//export fletching_go_release_array
func fletching_go_release_array(self C.uintptr_t) {
	defer recovered("ArrowArray.release")
	array := (*abi.ArrowArray)(abi.Pointer(uintptr(self)))
	n := take[*node[abi.ArrowArray]](array.PrivateData)
	array.Release = 0
	n.free(ReleaseArray)
}

// take gives what stands behind a struct, and nobody again; it panics where nothing does.
func take[T any](privateData uintptr) T {
	handle := cgo.Handle(privateData)
	value := handle.Value().(T)
	handle.Delete()
	return value
}

// A release callback has no result, so what goes wrong in one is kept.
var misuse struct {
	sync.Mutex
	errors []error
}

// Misused takes what went wrong in callbacks without a result since the last call: releases of
// structs that are not ours, or not any more.
func Misused() []error {
	misuse.Lock()
	defer misuse.Unlock()
	found := misuse.errors
	misuse.errors = nil
	return found
}

func recovered(callback string) {
	if problem := recover(); problem != nil {
		misuse.Lock()
		defer misuse.Unlock()
		misuse.errors = append(misuse.errors, fmt.Errorf("%s: %v", callback, problem))
	}
}
