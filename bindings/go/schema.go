// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"runtime"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Schema owns an ArrowSchema. Call Close, or pass the schema on with Export. See Array.
//
// See "The ArrowSchema structure" in the Arrow C data interface.
type Schema struct {
	owner[abi.ArrowSchema]
}

// ImportSchema moves the struct at a C address into an owner; see ImportArray for the promise and the errors.
func ImportSchema(address unsafe.Pointer) (*Schema, error) {
	schema := &Schema{}
	if err := importInto("ImportSchema", &schema.owner, &schemaKind, address); err != nil {
		return nil, err
	}
	return schema, nil
}

func newSchema(value abi.ArrowSchema) *Schema {
	schema := &Schema{}
	schema.fill(&schemaKind, value)
	return schema
}

// Root returns a view of the schema itself.
func (s *Schema) Root() SchemaView { return SchemaView{view[abi.ArrowSchema]{owner: s, raw: s.get()}} }

// Format returns a copy of the format string.
func (s *Schema) Format() string { return s.Root().Format() }

// Name returns a copy of the name; NULL is equivalent to an empty name. A foreign producer may have set a name
// that is not UTF-8.
func (s *Schema) Name() string { return s.Root().Name() }

// Flags returns the ARROW_FLAG_ bits.
func (s *Schema) Flags() int64 { return s.Root().Flags() }

// Metadata returns a copy of the metadata. Errors: EINVAL for a negative count or length.
func (s *Schema) Metadata() (Metadata, error) { return s.Root().Metadata() }

// NumChildren returns the number of children. It returns 0 if the list is NULL or the count is negative
// or above 2^22.
func (s *Schema) NumChildren() int { return s.Root().NumChildren() }

// Child returns a view of a child, which reads as released if the child does not exist or was moved out.
func (s *Schema) Child(index int) SchemaView { return s.Root().Child(index) }

// Dictionary returns a view of the dictionary's value type, which reads as released if there is no dictionary.
func (s *Schema) Dictionary() SchemaView { return s.Root().Dictionary() }

// TakeChild moves a child out. It is released in the parent's list. The specification demands that the
// parent is released soon afterwards.
//
// Errors: EINVAL if the child does not exist or was moved out before.
func (s *Schema) TakeChild(index int) (*Schema, error) {
	child, err := childToTake(s.get(), index)
	return s.takeBelow(child, err)
}

// TakeDictionary moves the dictionary out; see TakeChild.
func (s *Schema) TakeDictionary() (*Schema, error) {
	dictionary, err := dictionaryToTake(s.get())
	return s.takeBelow(dictionary, err)
}

func (s *Schema) takeBelow(below *abi.ArrowSchema, err error) (*Schema, error) {
	if err != nil {
		return nil, err
	}
	taken := newSchema(*below)
	below.Release = 0
	runtime.KeepAlive(s)
	return taken, nil
}

// Attach keeps a value until the struct is released; see Array.Attach.
func (s *Schema) Attach(value any) error {
	if s.IsReleased() {
		return closed("Attach")
	}
	defer runtime.KeepAlive(s)
	return attach(s.get(), value)
}

// SchemaView reads a schema that an owner keeps alive. It reads as an empty schema if the struct is
// released or the owner is closed.
type SchemaView struct {
	view[abi.ArrowSchema]
}

// Format returns a copy of the format string.
func (v SchemaView) Format() string { return read(v.view, (*abi.ArrowSchema).FormatString) }

// Name returns a copy of the name; NULL is equivalent to an empty name.
func (v SchemaView) Name() string { return read(v.view, (*abi.ArrowSchema).NameString) }

// Flags returns the ARROW_FLAG_ bits.
func (v SchemaView) Flags() int64 {
	return read(v.view, func(raw *abi.ArrowSchema) int64 { return raw.Flags })
}

// Metadata returns a copy of the metadata. Errors: EINVAL for a negative count or length.
func (v SchemaView) Metadata() (pairs Metadata, err error) {
	pairs = read(v.view, func(raw *abi.ArrowSchema) (pairs Metadata) {
		pairs, err = metadataAt(raw.Metadata)
		return pairs
	})
	return pairs, err
}

// Child returns a view of a child, which reads as released if the child does not exist or was moved out.
func (v SchemaView) Child(index int) SchemaView { return SchemaView{v.child(index)} }

// Dictionary returns a view of the dictionary's value type, which reads as released if there is no dictionary.
func (v SchemaView) Dictionary() SchemaView { return SchemaView{v.dictionary()} }
