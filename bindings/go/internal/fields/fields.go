// SPDX-License-Identifier: Apache-2.0

// Package fields lists the structs, fields and constants of package abi for the tests that compare them with C.
package fields

import "reflect"

// Struct is a struct of package abi.
type Struct struct {
	Name   string // the name in C
	Type   reflect.Type
	Fields []Field
}

// Field is a field with its names in C and in Go.
type Field struct {
	Name, GoName string
	Signature    string // the C signature of a callback, such as "void (struct ArrowArray*)"; else empty
}

// Integer is a macro or an enumerator with its value.
type Integer struct {
	Name  string
	Value int64
}

// Text is a macro with a string value.
type Text struct {
	Name, Value string
}

// Path is a field, or a field of an embedded struct, with its location.
type Path struct {
	Name   string // "device_id", "array.length"
	Type   reflect.Type
	Offset uintptr
}

// Leaf is a value that is neither struct nor array.
type Leaf struct {
	Path    string
	Element int // the index in an array, otherwise 0
	Type    reflect.Type
	Offset  uintptr
}

// Paths lists the fields. Each embedded struct is followed by its fields.
func (s Struct) Paths() []Path {
	var paths []Path
	for _, field := range s.Fields {
		member, found := s.Type.FieldByName(field.GoName)
		if !found {
			panic(s.Name + " has no field " + field.GoName)
		}
		paths = append(paths, Path{field.Name, member.Type, member.Offset})
		for _, inner := range embedded(member.Type) {
			paths = append(paths, Path{field.Name + "." + inner.Name, inner.Type, member.Offset + inner.Offset})
		}
	}
	return paths
}

// Leaves lists every value.
func (s Struct) Leaves() []Leaf {
	var leaves []Leaf
	for _, path := range s.Paths() {
		switch path.Type.Kind() {
		case reflect.Struct: // its fields follow
		case reflect.Array:
			element := path.Type.Elem()
			for i := range path.Type.Len() {
				leaves = append(leaves, Leaf{path.Name, i, element, path.Offset + uintptr(i)*element.Size()})
			}
		default:
			leaves = append(leaves, Leaf{path.Name, 0, path.Type, path.Offset})
		}
	}
	return leaves
}

func embedded(t reflect.Type) []Path {
	for _, s := range Structs {
		if s.Type == t {
			return s.Paths()
		}
	}
	return nil
}
