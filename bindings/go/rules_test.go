// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// A test of a rule of spec/rules/ has the rule's id as its name; rules.yaml lists those without a test.

// nowhere is no address: a read through it crashes.
const nowhere = 1

// exporter is an owner of any struct.
type exporter interface {
	Export(address unsafe.Pointer) error
}

// bits moves a struct out, into memory of C. It is released at the end of the test, if it is not before.
func bits[R any](t *testing.T, owner exporter) *R {
	t.Helper()
	raw := peer.New[R](1)
	if err := owner.Export(unsafe.Pointer(&raw[0])); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		switch raw := any(&raw[0]).(type) {
		case *abi.ArrowSchema:
			callbacks.ReleaseArrowSchema(raw)
		case *abi.ArrowArray:
			callbacks.ReleaseArrowArray(raw)
		case *abi.ArrowDeviceArray:
			callbacks.ReleaseArrowArray(&raw.Array)
		}
		peer.Free(raw)
	})
	return &raw[0]
}

// schemaTree is a struct of an int and a list, whose item has a dictionary.
func schemaTree() *fletching.SchemaBuilder {
	item := fletching.SchemaBuilder{Format: "c", Name: "item", Dictionary: &fletching.SchemaBuilder{Format: "u"}}
	return &fletching.SchemaBuilder{Format: "+s", Children: []fletching.SchemaBuilder{
		{Format: "i", Name: "a"}, {Format: "+l", Children: []fletching.SchemaBuilder{item}},
	}}
}

// eachSchema calls visit with a struct and all below it.
func eachSchema(raw *abi.ArrowSchema, visit func(*abi.ArrowSchema)) {
	visit(raw)
	for i := range raw.ChildAddresses() {
		eachSchema(raw.Child(i), visit)
	}
	if dictionary := raw.DictionaryStruct(); dictionary != nil {
		eachSchema(dictionary, visit)
	}
}

// eachArray is the same for arrays.
func eachArray(raw *abi.ArrowArray, visit func(*abi.ArrowArray)) {
	visit(raw)
	for i := range raw.ChildAddresses() {
		eachArray(raw.Child(i), visit)
	}
	if dictionary := raw.DictionaryStruct(); dictionary != nil {
		eachArray(dictionary, visit)
	}
}
