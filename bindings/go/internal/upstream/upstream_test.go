// SPDX-License-Identifier: Apache-2.0

//go:build fletching_upstream

package upstream

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/fields"
)

func TestStructs(t *testing.T) {
	found := map[string]string{}
	for _, s := range fields.Structs {
		found[s.Name] = describe(s.Type)
		for _, field := range s.Fields {
			member, _ := s.Type.FieldByName(field.GoName)
			found[s.Name+"."+field.Name] = describeField(member)
		}
	}
	expected := map[string]string{}
	for name, cgo := range Structs {
		expected[name] = describe(cgo)
		for i := range cgo.NumField() {
			// Blank fields are padding, which cgo generates.
			if member := cgo.Field(i); member.Name != "_" {
				expected[name+"."+member.Name] = describeField(member)
			}
		}
	}
	compare(t, found, expected)
}

func TestSignatures(t *testing.T) {
	found := map[string]string{}
	for _, s := range fields.Structs {
		for _, field := range s.Fields {
			if field.Signature != "" {
				found[s.Name+"."+field.Name] = field.Signature
			}
		}
	}
	compare(t, found, Signatures())
}

func TestIntegers(t *testing.T) {
	found := map[string]int64{}
	for _, constant := range fields.Integers {
		found[constant.Name] = constant.Value
	}
	compare(t, found, Integers)
}

func TestEnums(t *testing.T) {
	for owner, expected := range Enums {
		newest := slices.Max(slices.Collect(maps.Values(expected)))
		found := map[string]int64{}
		for _, enumerator := range fields.Enums[owner] {
			// The pinned header may be older than the spec.
			if _, known := expected[enumerator.Name]; known || enumerator.Value <= newest {
				found[enumerator.Name] = enumerator.Value
			}
		}
		compare(t, found, expected)
	}
}

func TestTexts(t *testing.T) {
	found := map[string]string{}
	for _, constant := range fields.Texts {
		found[constant.Name] = constant.Value
	}
	compare(t, found, Texts)
}

func describe(t reflect.Type) string {
	return fmt.Sprintf("%s of size %d, alignment %d", kind(t), t.Size(), t.Align())
}

func describeField(member reflect.StructField) string {
	return fmt.Sprintf("%s at offset %d", describe(member.Type), member.Offset)
}

// kind returns a type description common to both sides: "int64", "address", "[3]int64" or "struct".
func kind(t reflect.Type) string {
	if strings.HasSuffix(t.Name(), "DLDeviceType") {
		return "int32" // a C enum, whose signedness the compiler chooses
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.Uintptr:
		return "address"
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), kind(t.Elem()))
	default:
		return t.Kind().String()
	}
}

func compare[V comparable](t *testing.T, found, expected map[string]V) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if value, declared := found[name]; !declared {
			t.Errorf("%s: the binding does not declare it", name)
		} else if value != expected[name] {
			t.Errorf("%s: %v upstream, %v in the binding", name, expected[name], value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, declared := expected[name]; !declared {
			t.Errorf("%s: upstream does not declare it", name)
		}
	}
}
