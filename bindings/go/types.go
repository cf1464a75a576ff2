// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"fmt"
	"strings"

	"github.com/fletching/fletching/bindings/go/abi"
)

// CheckType compares the type of another schema with this one: format, number of children and
// dictionary, at every level. Names, flags and metadata may differ.
//
// Errors: EINVAL with the path of the first difference: `field "a.items": expected format "g", got "l"`.
func (b *SchemaBuilder) CheckType(other *SchemaBuilder) error {
	if found := b.compare(other, 0); found != nil {
		return invalid("%s", found)
	}
	return nil
}

func (b *SchemaBuilder) compare(other *SchemaBuilder, depth int) *mismatch {
	switch {
	case other == nil:
		return mismatched("expected a type, got nil")
	case depth == maxDepth:
		return mismatched("nested too deep: expected at most %d levels", maxDepth)
	case other.Format != b.Format:
		return mismatched("expected format %q, got %q", b.Format, other.Format)
	case len(other.Children) != len(b.Children):
		return mismatched("expected %d children, got %d", len(b.Children), len(other.Children))
	case (other.Dictionary != nil) != (b.Dictionary != nil):
		return b.wrongDictionary()
	}
	for i := range b.Children {
		if found := b.Children[i].compare(&other.Children[i], depth+1); found != nil {
			return found.below(b.Children[i].Name)
		}
	}
	if b.Dictionary == nil {
		return nil
	}
	return b.Dictionary.compare(other.Dictionary, depth+1).below("dictionary")
}

// compareShape compares the schema with the structs of an array: children and dictionaries.
func (b *SchemaBuilder) compareShape(array *abi.ArrowArray) *mismatch {
	if array == nil {
		return mismatched("expected an array, got NULL")
	}
	below := linksOf(array)
	children := below.children()
	switch {
	case below.released:
		return mismatched("expected a live array, got a released one")
	case below.count != int64(len(b.Children)) || len(children) != len(b.Children):
		return mismatched("expected %d children, got %d", len(b.Children), below.count)
	case (below.dictionary != 0) != (b.Dictionary != nil):
		return b.wrongDictionary()
	}
	for i, child := range children {
		if found := b.Children[i].compareShape(at[abi.ArrowArray](child)); found != nil {
			return found.below(b.Children[i].Name)
		}
	}
	if b.Dictionary == nil {
		return nil
	}
	return b.Dictionary.compareShape(at[abi.ArrowArray](below.dictionary)).below("dictionary")
}

func (b *SchemaBuilder) wrongDictionary() *mismatch {
	if b.Dictionary != nil {
		return mismatched("expected a dictionary, got none")
	}
	return mismatched("expected no dictionary, got one")
}

// mismatch is a difference and the path of its field.
type mismatch struct {
	path []string // field names, innermost first
	what string
}

func mismatched(format string, values ...any) *mismatch {
	return &mismatch{what: fmt.Sprintf(format, values...)}
}

// below adds the name of the parent. It returns nil for nil.
func (m *mismatch) below(name string) *mismatch {
	if m != nil {
		m.path = append(m.path, name)
	}
	return m
}

func (m *mismatch) String() string {
	if len(m.path) == 0 {
		return m.what
	}
	names := make([]string, 0, len(m.path))
	for i := range m.path {
		names = append(names, m.path[len(m.path)-1-i])
	}
	return fmt.Sprintf("field %q: %s", strings.Join(names, "."), m.what)
}

// typeOf returns the declared type of an array. It is called only when a stream needs the type.
type typeOf func() (*SchemaBuilder, error)

// below returns the type of a child, of the dictionary, or of the whole array.
func (t typeOf) below(index int) typeOf {
	if t == nil || index == all {
		return t
	}
	return func() (*SchemaBuilder, error) {
		types, err := t()
		switch {
		case err != nil:
			return nil, err
		case types == nil || index >= len(types.Children):
			return nil, nil
		case index == ofDictionary:
			return types.Dictionary, nil
		}
		return &types.Children[index], nil
	}
}

const ofDictionary = -2 // instead of an index

// typesOf copies the type of a schema. Errors: EINVAL for a closed or malformed schema.
func typesOf(operation string, schema *Schema) (*SchemaBuilder, error) {
	if _, err := countTree(operation, schema.get()); err != nil {
		return nil, err
	}
	types := schema.Root().types()
	return &types, nil
}

// types must be called after countTree.
func (v SchemaView) types() SchemaBuilder {
	copied := SchemaBuilder{Format: v.Format(), Name: v.Name()}
	for i := range v.NumChildren() {
		copied.Children = append(copied.Children, v.Child(i).types())
	}
	if dictionary := v.Dictionary(); dictionary.raw != nil {
		values := dictionary.types()
		copied.Dictionary = &values
	}
	return copied
}

// checkBatch compares a batch with the schema of its stream: its type, if it is known, and its structs.
//
// Errors: EINVAL with the number of the batch, the path of the field, and the rule, if there is one.
func (b *SchemaBuilder) checkBatch(rule string, number int, batch *abi.ArrowArray, known typeOf) error {
	found := b.compareShape(batch)
	if found == nil && known != nil {
		types, err := known()
		if err != nil {
			return err
		}
		found = b.compare(types, 0)
	}
	switch {
	case found == nil:
		return nil
	case rule != "":
		return brokenRule(rule, fmt.Sprintf("batch %d: %s", number, found))
	}
	return invalid("batch %d: %s", number, found)
}
