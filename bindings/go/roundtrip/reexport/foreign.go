package reexport

import (
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

// ReleaseSchema releases a schema, unless it has been released or moved away.
func ReleaseSchema(schema *abi.ArrowSchema) { callbacks.ReleaseArrowSchema(schema) }

// ReleaseArray releases an array likewise.
func ReleaseArray(array *abi.ArrowArray) { callbacks.ReleaseArrowArray(array) }

// ReleaseStream releases a stream likewise.
func ReleaseStream(stream *abi.ArrowDeviceArrayStream) {
	callbacks.ReleaseArrowDeviceArrayStream(stream)
}

// GetSchema pulls the schema of a stream that has been checked. An error is a walk.Error with the
// errno and the text that the stream gave.
func GetSchema(stream *abi.ArrowDeviceArrayStream) (*abi.ArrowSchema, error) {
	schema := new(abi.ArrowSchema)
	if code, _ := callbacks.CallArrowDeviceArrayStreamGetSchema(stream, schema); code != 0 {
		return nil, lastError(stream, int(code))
	}
	return schema, nil
}

// GetNext pulls the next array likewise; at the end it is released.
func GetNext(stream *abi.ArrowDeviceArrayStream) (*abi.ArrowDeviceArray, error) {
	array := new(abi.ArrowDeviceArray)
	if code, _ := callbacks.CallArrowDeviceArrayStreamGetNext(stream, array); code != 0 {
		return nil, lastError(stream, int(code))
	}
	return array, nil
}

// What a failed call left in its out-struct is nobody's.
func lastError(stream *abi.ArrowDeviceArrayStream, code int) error {
	text, _ := callbacks.CallArrowDeviceArrayStreamGetLastError(stream)
	if text == 0 {
		return &walk.Error{Code: code, Text: "the stream failed and gave no text"}
	}
	return &walk.Error{Code: code, Text: walk.Printable(walk.Text(text))}
}
