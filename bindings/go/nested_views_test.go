// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// manyViews is too many for nested calls on a stack.
const manyViews = 1 << 17

// below makes the array the child of a new array.
func below(t *testing.T, child *fletching.Array, owner any) *fletching.Array {
	raw := peer.New[abi.ArrowArray](1)
	defer peer.Free(raw)
	succeed(t, must((&fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{{}}}).Build(owner)).Export(unsafe.Pointer(&raw[0])))
	callbacks.ReleaseArrowArray(raw[0].Child(0))
	succeed(t, child.Export(abi.Pointer(raw[0].ChildAddresses()[0])))
	return importArray(t, raw[0])
}

// The releases of views must not nest, which would overflow the stack.
func TestManyViewsBelowParentsAreReleased(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 0, false))
	closed := 0
	for i := range manyViews {
		shared := must(below(t, array, nil).Share())
		array = must(shared.Column(0))
		shared.Close()
		if i%2 == 1 {
			succeed(t, array.Attach(onClose(func() { closed++ })))
		}
	}
	log.expect(t)
	array.Close()
	log.expect(t, "a")
	if closed != manyViews/2 {
		t.Errorf("closed: expected %d, got %d", manyViews/2, closed)
	}
}

func TestManyViewsWithAttachedValuesAreReleased(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 1, false))
	closed := 0
	for range manyViews {
		shared := must(array.Share())
		array = must(shared.View())
		shared.Close()
		succeed(t, array.Attach(onClose(func() { closed++ })))
	}
	child := must(array.TakeChild(0))
	array.Close()
	log.expect(t)
	child.Close()
	log.expect(t, "a0", "a")
	if closed != manyViews {
		t.Errorf("closed: expected %d, got %d", manyViews, closed)
	}
}

// Owners that keep other owners are also closed without nesting.
func TestManyNestedOwnersAreReleased(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 0, false))
	schema := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	succeed(t, schema.Attach(&note{&log, "schema"}))
	for i := range manyViews {
		switch i % 4 {
		case 0:
			array = must((&fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{{}}}).Build(array))
		case 1:
			array = must((&fletching.ArrayBuilder{}).Build(must(array.Share())))
		case 2:
			array = must((&fletching.ArrayBuilder{}).Build(must(array.ToDevice())))
		case 3:
			next := must((&fletching.ArrayBuilder{}).Build(nil))
			succeed(t, next.Attach(array))
			array = next
		}
		next := must((&fletching.SchemaBuilder{Format: "i"}).Build())
		succeed(t, next.Attach(schema))
		schema = next
	}
	log.expect(t)
	array.Close()
	log.expect(t, "a")
	schema.Close()
	log.expect(t, "schema")
	var none *fletching.Array
	must((&fletching.ArrayBuilder{}).Build(none)).Close()
}

// A value is dropped after its struct is released, and also after a view is released.
func TestNestedViewsCloseValuesInOrder(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 1, false))
	for i := range 3 {
		shared := must(array.Share())
		array = must(shared.View())
		shared.Close()
		for _, suffix := range []string{"x", "y"} {
			succeed(t, array.Attach(&note{&log, strconv.Itoa(i) + suffix}))
		}
	}
	array.Close()
	log.expect(t, "a0", "a", "0x", "0y", "1x", "1y", "2x", "2y")
}

// A release inside a value's Close is complete when it returns, even during the release of a view.
func TestViewInAttachedValueIsReleasedWithValue(t *testing.T) {
	var log log
	viewOf := func(name string) *fletching.Array {
		shared := must(importArray(t, rawArray(&log, name, 0, false)).Share())
		defer shared.Close()
		return must(shared.View())
	}
	inner, outer := viewOf("inner"), viewOf("outer")
	succeed(t, outer.Attach(onClose(func() {
		inner.Close()
		log.add("value")
	})))
	shared := must(outer.Share())
	view := must(shared.View())
	shared.Close()
	view.Close()
	log.expect(t, "outer", "inner", "value")
}
