// Package dump writes structs as text, one line for each field (tests/roundtrip/README.md, "The dump").
package dump

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// What is nested deeper is not walked.
const maxDepth = 256

// Of moves both structs into owners, writes what the owners read in them, and moves them back. What has
// no accessor is read in a copy of the bits: private_data, reserved, and whether a text is NULL.
//
// Errors: for a released struct, a list or a child that is NULL or released, a format that is NULL, and
// metadata that cannot be read.
func Of(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) (string, error) {
	schemaBits, arrayBits := *schema, *array
	schemaOwner, err := fletching.ImportSchema(unsafe.Pointer(schema))
	if err != nil {
		return "", err
	}
	arrayOwner, err := fletching.ImportDeviceArray(unsafe.Pointer(array))
	if err != nil {
		return "", errors.Join(err, schemaOwner.Export(unsafe.Pointer(schema)))
	}
	text, err := write(schemaOwner, &schemaBits, arrayOwner, &arrayBits)
	return text, errors.Join(err, schemaOwner.Export(unsafe.Pointer(schema)), arrayOwner.Export(unsafe.Pointer(array)))
}

func write(schema *fletching.Schema, schemaBits *abi.ArrowSchema, array *fletching.DeviceArray, arrayBits *abi.ArrowDeviceArray) (string, error) {
	var out text
	if err := out.schema("schema.", schema.Root(), schemaBits, 0); err != nil {
		return "", err
	}
	if err := out.array("array.", array.Root(), &arrayBits.Array, 0); err != nil {
		return "", err
	}
	out.line("", "device_id", array.DeviceID())
	out.line("", "device_type", int32(array.DeviceType()))
	out.line("", "sync_event", address(array.SyncEvent()))
	for i, word := range arrayBits.Reserved {
		out.line("", fmt.Sprintf("reserved[%d]", i), word)
	}
	return out.String(), nil
}

type text struct {
	strings.Builder
}

func (t *text) line(path, field string, value any) {
	fmt.Fprintf(t, "%s%s=%v\n", path, field, value)
}

func (t *text) schema(path string, schema fletching.SchemaView, bits *abi.ArrowSchema, depth int) error {
	if bits == nil || schema.IsReleased() {
		return fmt.Errorf("%s: NULL or released: expected a live schema", path)
	}
	if bits.Format == 0 {
		return fmt.Errorf("%sformat: NULL: expected a format string", path)
	}
	if err := listed(path, bits.NChildren, schema.NumChildren(), depth); err != nil {
		return err
	}
	metadata, err := schema.Metadata()
	if err != nil {
		return err
	}
	block, err := metadata.Encode()
	if err != nil {
		return err
	}
	t.line(path, "format", quoted(bits.Format, schema.Format()))
	t.line(path, "name", quoted(bits.Name, schema.Name()))
	t.line(path, "metadata", quoted(bits.Metadata, string(block)))
	t.line(path, "flags", schema.Flags())
	t.line(path, "n_children", schema.NumChildren())
	for i := range schema.NumChildren() {
		child := fmt.Sprintf("%schildren[%d].", path, i)
		if err := t.schema(child, schema.Child(i), bits.Child(i), depth+1); err != nil {
			return err
		}
	}
	if bits.Dictionary != 0 {
		err = t.schema(path+"dictionary.", schema.Dictionary(), bits.DictionaryStruct(), depth+1)
	}
	t.line(path, "private_data", address(bits.PrivateData))
	return err
}

func (t *text) array(path string, array fletching.ArrayView, bits *abi.ArrowArray, depth int) (err error) {
	if bits == nil || array.IsReleased() {
		return fmt.Errorf("%s: NULL or released: expected a live array", path)
	}
	if err := listed(path, bits.NChildren, array.NumChildren(), depth); err != nil {
		return err
	}
	t.line(path, "length", array.Length())
	t.line(path, "null_count", array.NullCount())
	t.line(path, "offset", array.Offset())
	t.line(path, "n_buffers", array.NumBuffers())
	t.line(path, "n_children", array.NumChildren())
	for i, buffer := range array.BufferAddresses() {
		t.line(path, fmt.Sprintf("buffers[%d]", i), address(buffer))
	}
	for i := range array.NumChildren() {
		child := fmt.Sprintf("%schildren[%d].", path, i)
		if err := t.array(child, array.Child(i), bits.Child(i), depth+1); err != nil {
			return err
		}
	}
	if bits.Dictionary != 0 {
		err = t.array(path+"dictionary.", array.Dictionary(), bits.DictionaryStruct(), depth+1)
	}
	t.line(path, "private_data", address(bits.PrivateData))
	return err
}

// listed returns an error unless every child is in a list.
func listed(path string, count int64, read, depth int) error {
	if depth == maxDepth {
		return fmt.Errorf("%s: nested too deep: expected at most %d levels", path, maxDepth)
	}
	if count != int64(read) {
		return fmt.Errorf("%sn_children: expected 0 or more and a list of them, got %d, of which %d can be read", path, count, read)
	}
	return nil
}

func address(value uintptr) string { return fmt.Sprintf("%#x", value) }

// quoted is NULL, or the bytes.
func quoted(pointer uintptr, content string) string {
	if pointer == 0 {
		return "NULL"
	}
	var out strings.Builder
	for _, b := range []byte(content) {
		if b == '"' || b == '%' || b < ' ' || b > '~' {
			fmt.Fprintf(&out, "%%%02x", b)
		} else {
			out.WriteByte(b)
		}
	}
	return `"` + out.String() + `"`
}
