package walk

import (
	"strconv"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Deeper than any type that people use, and not so deep that a loop of foreign structs exhausts the
// stack.
const maxDepth = 64

// CheckSchema returns an Error (EINVAL) that names node and field when something is released, is
// NULL where it must not be, or is negative. It does not read texts.
func CheckSchema(schema *abi.ArrowSchema) error {
	if schema == nil {
		return Errorf(syscall.EINVAL, "schema is NULL")
	}
	return checkSchema(root, schema)
}

// Check is CheckSchema, and the same for the array, which has to fit the schema. It reads neither
// texts nor buffers.
func Check(schema *abi.ArrowSchema, array *abi.ArrowArray) error {
	if err := CheckSchema(schema); err != nil {
		return err
	}
	if array == nil {
		return Errorf(syscall.EINVAL, "array is NULL")
	}
	return checkArray(root, schema, array)
}

// CheckStream returns an Error (EINVAL) when the stream is released or lacks a callback.
func CheckStream(stream *abi.ArrowDeviceArrayStream) error {
	switch {
	case stream == nil:
		return Errorf(syscall.EINVAL, "stream is NULL")
	case stream.Release == 0:
		return Errorf(syscall.EINVAL, "stream is released")
	case stream.GetSchema == 0:
		return Errorf(syscall.EINVAL, "stream.get_schema is NULL")
	case stream.GetNext == 0:
		return Errorf(syscall.EINVAL, "stream.get_next is NULL")
	case stream.GetLastError == 0:
		return Errorf(syscall.EINVAL, "stream.get_last_error is NULL")
	}
	return nil
}

// place is where a node stands: "/" for the root, "/2/d" for the dictionary of its third child.
type place struct {
	path  string
	depth int
}

var root = place{}

func (p place) String() string {
	if p.path == "" {
		return "/"
	}
	return p.path
}

func (p place) child(index int) place { return place{p.path + "/" + strconv.Itoa(index), p.depth + 1} }
func (p place) dictionary() place     { return place{p.path + "/d", p.depth + 1} }

func (p place) refuse(format string, arguments ...any) error {
	return Errorf(syscall.EINVAL, "%v "+format, append([]any{p}, arguments...)...)
}

func checkSchema(p place, schema *abi.ArrowSchema) error {
	if err := checkNode(p, "schema", uintptr(schema.Release), schema.NChildren, schema.Children); err != nil {
		return err
	}
	if schema.Format == 0 {
		return p.refuse("schema.format is NULL")
	}
	for i, child := range SchemaChildren(schema) {
		if child == nil {
			return p.refuse("schema.children[%d] is NULL", i)
		}
		if err := checkSchema(p.child(i), child); err != nil {
			return err
		}
	}
	if dictionary := (*abi.ArrowSchema)(abi.Pointer(schema.Dictionary)); dictionary != nil {
		return checkSchema(p.dictionary(), dictionary)
	}
	return nil
}

// The schema has been checked.
func checkArray(p place, schema *abi.ArrowSchema, array *abi.ArrowArray) error {
	if err := checkNode(p, "array", uintptr(array.Release), array.NChildren, array.Children); err != nil {
		return err
	}
	if err := checkNumbers(p, schema, array); err != nil {
		return err
	}
	schemas := SchemaChildren(schema)
	for i, child := range ArrayChildren(array) {
		if child == nil {
			return p.refuse("array.children[%d] is NULL", i)
		}
		if err := checkArray(p.child(i), schemas[i], child); err != nil {
			return err
		}
	}
	if dictionary := (*abi.ArrowArray)(abi.Pointer(array.Dictionary)); dictionary != nil {
		return checkArray(p.dictionary(), (*abi.ArrowSchema)(abi.Pointer(schema.Dictionary)), dictionary)
	}
	return nil
}

func checkNumbers(p place, schema *abi.ArrowSchema, array *abi.ArrowArray) error {
	switch {
	case array.Length < 0:
		return p.refuse("array.length is %d", array.Length)
	case array.Offset < 0:
		return p.refuse("array.offset is %d", array.Offset)
	case array.NullCount < -1:
		return p.refuse("array.null_count is %d", array.NullCount)
	case array.NChildren != schema.NChildren:
		return p.refuse("array.n_children is %d, schema.n_children is %d", array.NChildren, schema.NChildren)
	case (array.Dictionary == 0) != (schema.Dictionary == 0):
		return p.refuse("has a dictionary in only one of schema and array")
	}
	return checkList(p, "array.n_buffers", array.NBuffers, array.Buffers)
}

// checkNode checks what schemas and arrays have in common.
func checkNode(p place, kind string, release uintptr, nChildren int64, children uintptr) error {
	if release == 0 {
		return p.refuse("%s is released", kind)
	}
	if p.depth > maxDepth {
		return p.refuse("%s is nested deeper than %d", kind, maxDepth)
	}
	return checkList(p, kind+".n_children", nChildren, children)
}

func checkList(p place, name string, count int64, list uintptr) error {
	if count < 0 {
		return p.refuse("%s is %d", name, count)
	}
	if count > 0 && list == 0 {
		return p.refuse("%s is %d, and the pointer to them is NULL", name, count)
	}
	return nil
}

// SchemaChildren lists the children of a schema that has been checked so far.
func SchemaChildren(schema *abi.ArrowSchema) []*abi.ArrowSchema {
	return pointers[abi.ArrowSchema](schema.Children, schema.NChildren)
}

// ArrayChildren lists the children of an array that has been checked so far.
func ArrayChildren(array *abi.ArrowArray) []*abi.ArrowArray {
	return pointers[abi.ArrowArray](array.Children, array.NChildren)
}

// addresses copies a list of pointers of C; what they point to stays where it is.
func addresses(list uintptr, count int64) []uintptr {
	return append([]uintptr(nil), unsafe.Slice((*uintptr)(abi.Pointer(list)), count)...)
}

func pointers[T any](list uintptr, count int64) []*T {
	found := make([]*T, 0, count)
	for _, address := range addresses(list, count) {
		found = append(found, (*T)(abi.Pointer(address)))
	}
	return found
}
