// Package reexport passes data on under releases of Go, which are counted.
package reexport

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

var exported, released atomic.Int64

// Exported returns how many structs were exported here.
func Exported() int64 { return exported.Load() }

// Released returns how many of them have been released.
func Released() int64 { return released.Load() }

// count counts the release of what it is attached to.
type count struct{}

func (count) Close() { released.Add(1) }

// viewed is *Schema or *DeviceArray.
type viewed interface {
	Attach(value any) error
	Close()
}

// counted returns a view of what is shared, and its count.
func counted[T viewed](view T, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	if err := view.Attach(count{}); err != nil {
		view.Close()
		return none, err
	}
	exported.Add(1)
	return view, nil
}

// Schema returns a schema of Go's over the source, which is released when that one is.
func Schema(source *fletching.Schema) (*fletching.Schema, error) {
	shared, err := source.Share()
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	return counted(shared.View())
}

// Array is Schema for a device array.
func Array(source *fletching.DeviceArray) (*fletching.DeviceArray, error) {
	shared, err := source.Share()
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	return counted(shared.View())
}

// Structs moves both in, and fills the others. What cannot be passed on stays where it was.
func Structs(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray, outSchema *abi.ArrowSchema, outArray *abi.ArrowDeviceArray) error {
	schemaOwner, err := fletching.ImportSchema(unsafe.Pointer(schema))
	if err != nil {
		return err
	}
	defer schemaOwner.Close()
	if _, err := schemaOwner.Root().Builder(); err != nil {
		return errors.Join(err, schemaOwner.Export(unsafe.Pointer(schema)))
	}
	arrayOwner, err := fletching.ImportDeviceArray(unsafe.Pointer(array))
	if err != nil {
		return errors.Join(err, schemaOwner.Export(unsafe.Pointer(schema)))
	}
	defer arrayOwner.Close()
	ourSchema, err := Schema(schemaOwner)
	if err != nil {
		return err
	}
	defer ourSchema.Close()
	ourArray, err := Array(arrayOwner)
	if err != nil {
		return err
	}
	return errors.Join(ourSchema.Export(unsafe.Pointer(outSchema)), ourArray.Export(unsafe.Pointer(outArray)))
}
