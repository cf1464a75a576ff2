// Package reexport passes data on under releases of Go, which are counted.
package reexport

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/dump"
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
	if _, err := dump.Of(schema, array); err != nil {
		return err
	}
	schemaOwner, err := fletching.ImportSchema(unsafe.Pointer(schema))
	if err != nil {
		return err
	}
	defer schemaOwner.Close()
	arrayOwner, err := fletching.ImportDeviceArray(unsafe.Pointer(array))
	if err != nil {
		return err
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

// Observe is called with the schema and each batch of a stream. It may move the structs and move them back.
type Observe func(schema *abi.ArrowSchema, batch *abi.ArrowDeviceArray) error

// reader reads a stream, shows each batch, and exports it again.
type reader struct {
	count
	source   *fletching.DeviceArrayStream
	expected abi.ArrowSchema
	observe  Observe
}

func (r *reader) Next() (*fletching.DeviceArray, error) {
	batch, err := r.source.Next()
	if err != nil {
		return nil, err
	}
	var raw abi.ArrowDeviceArray
	if err := batch.Export(unsafe.Pointer(&raw)); err != nil {
		return nil, err
	}
	problem := r.observe(&r.expected, &raw)
	if batch, err = fletching.ImportDeviceArray(unsafe.Pointer(&raw)); err != nil {
		return nil, errors.Join(problem, err)
	}
	defer batch.Close()
	if problem != nil {
		return nil, problem
	}
	return Array(batch)
}

func (r *reader) Close() {
	r.source.Close()
	if schema, err := fletching.ImportSchema(unsafe.Pointer(&r.expected)); err == nil {
		schema.Close()
	}
	r.count.Close()
}

// Stream returns a stream of Go's of what is in the source, which is moved in. An error passes on.
func Stream(source *fletching.DeviceArrayStream, observe Observe) (*fletching.DeviceArrayStream, error) {
	r := &reader{source: source, observe: observe}
	exported.Add(1)
	stream, err := r.open()
	if err != nil {
		r.Close()
	}
	return stream, err
}

func (r *reader) open() (*fletching.DeviceArrayStream, error) {
	expected, err := r.source.Schema()
	if err != nil {
		return nil, err
	}
	if err := expected.Export(unsafe.Pointer(&r.expected)); err != nil {
		return nil, err
	}
	source, err := r.source.Schema()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	schema, err := Schema(source)
	if err != nil {
		return nil, err
	}
	defer schema.Close()
	return fletching.NewDeviceArrayStreamFrom(schema, r.source.DeviceType(), r)
}
