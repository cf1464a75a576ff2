// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/fletching/fletching/bindings/go/abi"
)

// SchemaBuilder describes a schema with all its children. It is plain data that needs no Close. Build may be
// called repeatedly. SchemaBuilder does not interpret the format.
//
// See "The ArrowSchema structure" in the Arrow C data interface.
type SchemaBuilder struct {
	// Format is the format string; for a dictionary-encoded type, the indices' format string.
	Format string

	// Name is the name of the field. An empty name is written as "", because some consumers reject NULL.
	Name string

	// Flags are the ARROW_FLAG_ bits. A nullable field has abi.FlagNullable.
	Flags int64

	// Metadata is written as NULL if it is empty.
	Metadata Metadata

	// Children and Dictionary describe the nested schemas.
	Children   []SchemaBuilder
	Dictionary *SchemaBuilder
}

// Builder returns a copy of the schema for modification or for Build.
//
// Errors: EINVAL for a released schema, for a malformed schema as in Shared.Column, for a format or name that is not
// UTF-8, and for unreadable metadata.
func (v SchemaView) Builder() (SchemaBuilder, error) {
	const operation = "Builder"
	if v.IsReleased() {
		return SchemaBuilder{}, closed(operation)
	}
	defer runtime.KeepAlive(v.owner)
	if _, err := countTree(operation, v.raw); err != nil {
		return SchemaBuilder{}, err
	}
	copied, err := v.copy()
	if err != nil {
		return SchemaBuilder{}, invalid("%s: %v", operation, err)
	}
	return copied, nil
}

// copy must be called after countTree.
func (v SchemaView) copy() (SchemaBuilder, error) {
	copied := SchemaBuilder{Format: v.Format(), Name: v.Name(), Flags: v.Flags()}
	if !utf8.ValidString(copied.Format) || !utf8.ValidString(copied.Name) {
		return SchemaBuilder{}, errors.New("format or name: expected UTF-8")
	}
	var err error
	if copied.Metadata, err = v.Metadata(); err != nil {
		return SchemaBuilder{}, err
	}
	for i := range v.NumChildren() {
		child, err := v.Child(i).copy()
		if err != nil {
			return SchemaBuilder{}, err
		}
		copied.Children = append(copied.Children, child)
	}
	if dictionary := v.Dictionary(); dictionary.raw != nil {
		values, err := dictionary.copy()
		if err != nil {
			return SchemaBuilder{}, err
		}
		copied.Dictionary = &values
	}
	return copied, nil
}

// Build returns the schema in one C allocation, with copies of the strings.
//
// Errors: EINVAL for an empty format, for a format or name that is not UTF-8 or contains NUL, for metadata that
// cannot be encoded, and for more than 256 levels or 2^22 structs, with the path of the child; ENOMEM.
func (b *SchemaBuilder) Build() (*Schema, error) {
	structs := 0
	var texts []byte // in the order in which write reads them
	if err := b.collect(&structs, &texts, 0); err != nil {
		return nil, invalid("SchemaBuilder: %v", err)
	}
	block, ok := newBlock[abi.ArrowSchema](structs, 0, len(texts), 0, 0)
	if !ok {
		return nil, noMemory("SchemaBuilder")
	}
	copy(block.bytes, texts)
	free := freeBlock[abi.ArrowSchema]{block.structs[1:], block.list, nil, block.bytes}
	b.write(&block.structs[0], block.address, &free)
	return newSchema(block.structs[0]), nil
}

func (b *SchemaBuilder) collect(structs *int, texts *[]byte, depth int) error {
	*structs++
	switch {
	case depth == maxDepth:
		return fmt.Errorf("nested too deep: expected at most %d levels", maxDepth)
	case *structs > maxStructs:
		return fmt.Errorf("too many structs: expected at most %d", maxStructs)
	case b.Format == "":
		return errors.New("format: empty: expected a format string")
	case strings.Contains(b.Format, "\x00"):
		return errors.New("format: NUL character: expected text without it")
	case strings.Contains(b.Name, "\x00"):
		return errors.New("name: NUL character: expected text without it")
	case !utf8.ValidString(b.Format):
		return errors.New("format: not UTF-8")
	case !utf8.ValidString(b.Name):
		return errors.New("name: not UTF-8")
	}
	*texts = appendPadded(*texts, b.Format+"\x00")
	*texts = appendPadded(*texts, b.Name+"\x00")
	if len(b.Metadata) > 0 {
		metadata, err := b.Metadata.Encode()
		if err != nil {
			return err
		}
		*texts = appendPadded(*texts, metadata)
	}
	for i := range b.Children {
		if err := b.Children[i].collect(structs, texts, depth+1); err != nil {
			return fmt.Errorf("child %d: %w", i, err)
		}
	}
	if b.Dictionary == nil {
		return nil
	}
	if err := b.Dictionary.collect(structs, texts, depth+1); err != nil {
		return fmt.Errorf("dictionary: %w", err)
	}
	return nil
}

// write fills the struct and its nested structs.
func (b *SchemaBuilder) write(raw *abi.ArrowSchema, block uintptr, free *freeBlock[abi.ArrowSchema]) {
	children := take(&free.structs, len(b.Children))
	*raw = abi.ArrowSchema{
		Format: addressOf(take(&free.bytes, padded(len(b.Format)+1))),
		Name:   addressOf(take(&free.bytes, padded(len(b.Name)+1))), Flags: b.Flags,
		NChildren: int64(len(children)), Children: addressOf(take(&free.list, len(children))),
		Release: releaseSchema, PrivateData: block,
	}
	if len(b.Metadata) > 0 {
		raw.Metadata = addressOf(take(&free.bytes, padded(b.Metadata.encodedSize())))
	}
	for i := range children {
		b.Children[i].write(&children[i], block, free)
	}
	if b.Dictionary != nil {
		take(&free.list, 1)
		dictionary := take(&free.structs, 1)
		raw.Dictionary = addressOf(dictionary)
		b.Dictionary.write(&dictionary[0], block, free)
	}
}

// padded aligns the integers in metadata, for consumers that read them as int32.
func padded(size int) int { return (size + 7) &^ 7 }

func appendPadded[T string | []byte](texts []byte, text T) []byte {
	texts = append(texts, text...)
	return append(texts, make([]byte, padded(len(text))-len(text))...)
}
