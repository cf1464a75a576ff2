// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package oracle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/internal/fields"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

func TestMain(m *testing.M) {
	if repository.Root() == "" && os.Getenv("FLETCHING_LIB_DIR") == "" {
		fmt.Fprintln(os.Stderr, "skipped: the tests need the repository of Fletching, or its libraries in FLETCHING_LIB_DIR")
		return
	}
	name := "libfletching_oracle.so"
	if runtime.GOOS == "darwin" {
		name = "libfletching_oracle.dylib"
	}
	if err := Open(filepath.Join(repository.Libraries(), name)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// checker collects the answers of the oracle.
type checker struct {
	asserted int
	problems []error
}

func (c *checker) check(err error) {
	c.asserted++
	if err != nil {
		c.problems = append(c.problems, err)
	}
}

// run performs and reports the checks of one cell, and returns whether all passed.
func run(t *testing.T, owner, direction string, checks func(*checker)) bool {
	return t.Run(owner+"/"+direction, func(t *testing.T) {
		var c checker
		checks(&c)
		if c.asserted == 0 {
			c.problems = append(c.problems, errors.New("nothing was compared"))
		}
		result := cell{
			Language: "go", Backend: "none", Struct: owner, Direction: direction, Status: "real",
			Asserted: c.asserted, OK: len(c.problems) == 0,
		}
		for _, problem := range c.problems {
			t.Error(problem)
		}
		if !result.OK {
			result.Reason = c.problems[0].Error()
		}
		report(t, result)
	})
}

func TestStructs(t *testing.T) {
	for _, s := range fields.Structs {
		sound := run(t, s.Name, "layout", func(c *checker) {
			checkLayout(c, s)
			checkSignatures(c, s)
		})
		run(t, s.Name, "c_writes", func(c *checker) { checkCWrites(c, s) })
		run(t, s.Name, "c_verifies", func(c *checker) { checkCVerifies(c, s) })
		if !sound {
			// A call through a misplaced callback would jump to an arbitrary address.
			skipped := func(c *checker) { c.check(errors.New(s.Name + ": not called, its layout is wrong")) }
			run(t, s.Name, "c_calls", skipped)
			run(t, s.Name, "c_is_called", skipped)
			continue
		}
		run(t, s.Name, "c_calls", func(c *checker) { checkCCalls(c, s) })
		run(t, s.Name, "c_is_called", func(c *checker) { checkCIsCalled(c, s) })
	}
}

func TestEveryStruct(t *testing.T) {
	for _, name := range Structs() {
		declared := func(s fields.Struct) bool { return s.Name == name }
		if !slices.ContainsFunc(fields.Structs, declared) {
			t.Errorf("%s: the binding has no such struct", name)
		}
	}
}

func TestConstants(t *testing.T) {
	run(t, "constants", "layout", func(c *checker) {
		var names []string
		for _, constant := range fields.Integers {
			names = append(names, constant.Name)
			c.check(CheckConstant(constant.Name, constant.Value))
		}
		c.check(CheckConstantNames(strings.Join(names, ",")))
		for owner, enumerators := range fields.Enums {
			var values []string
			for _, enumerator := range enumerators {
				values = append(values, fmt.Sprintf("%s=%d", enumerator.Name, enumerator.Value))
			}
			c.check(CheckEnumerators(owner, strings.Join(values, ",")))
		}
	})
}

func checkLayout(c *checker, s fields.Struct) {
	c.check(CheckStruct(s.Name, s.Type.Size(), alignment(s)))
	var names []string
	for _, field := range s.Fields {
		names = append(names, field.Name)
	}
	c.check(CheckFieldNames(s.Name, strings.Join(names, ",")))
	for _, path := range s.Paths() {
		c.check(CheckField(s.Name, path.Name, path.Offset, path.Type.Size()))
	}
}

// alignment returns the alignment of a struct in Go, which is at most int64's alignment. C aligns more strictly on some
// targets (see the documentation of package abi), where the alignment is not checked.
func alignment(s fields.Struct) int {
	most := reflect.TypeFor[int64]().Align()
	if s.Type.Align() == most && Align(s.Name) > most {
		return Align(s.Name)
	}
	return s.Type.Align()
}

// checkSignatures checks the signatures listed in package fields, which package callbacks has too. The fields
// themselves are uintptrs.
func checkSignatures(c *checker, s fields.Struct) {
	var names []string
	for _, field := range s.Fields {
		if field.Signature != "" {
			names = append(names, field.Name)
			c.check(CheckSignature(s.Name, field.Name, widths(field.Signature)))
		}
	}
	c.check(CheckCallbackNames(s.Name, strings.Join(names, ",")))
}

// widths converts "int (struct ArrowAsyncTask*, int64_t)" to the oracle's form "p,8->4".
func widths(signature string) string {
	result, rest, _ := strings.Cut(signature, " (")
	rest = functionPointer.ReplaceAllString(strings.TrimSuffix(rest, ")"), "void*")
	var arguments []string
	for argument := range strings.SplitSeq(rest, ", ") {
		arguments = append(arguments, width(argument))
	}
	return strings.Join(arguments, ",") + "->" + width(result)
}

var functionPointer = regexp.MustCompile(`\w+ \(\*\)\([^)]*\)`)

func width(ctype string) string {
	sizes := map[string]string{
		"void": "v", "int": "4", "DLDeviceType": "4", "int32_t": "4", "uint32_t": "4", "int64_t": "8", "uint64_t": "8",
	}
	if strings.HasSuffix(ctype, "*") {
		return "p"
	}
	return sizes[ctype]
}

func checkCWrites(c *checker, s fields.Struct) {
	object := newObject(s)
	if err := Fill(s.Name, object); err != nil {
		c.check(err)
		return
	}
	for _, leaf := range s.Leaves() {
		c.check(CheckRead(s.Name, leaf.Path, leaf.Element, read(value(leaf, object))))
	}
}

func checkCVerifies(c *checker, s fields.Struct) {
	object := newObject(s)
	for _, leaf := range s.Leaves() {
		write(value(leaf, object), Canary(s.Name, leaf.Path, leaf.Element))
	}
	c.check(CheckWritten(s.Name, object))
}

func checkCCalls(c *checker, s fields.Struct) {
	object := newObject(s)
	callbacks := callbacksOf(s)
	c.check(CheckCallbackNames(s.Name, namesOf(callbacks)))
	if report, found := Report[s.Name]; found {
		report(object)
	}
	for _, callback := range callbacks {
		for variant := range Variants() {
			// Set it again each time: a release sets itself to NULL.
			callbackField(s, callback, object).SetUint(uint64(callback.Function))
			c.check(CallFromC(s.Name, callback.Name, variant, object))
		}
	}
}

func checkCIsCalled(c *checker, s fields.Struct) {
	object := newObject(s)
	if err := Install(s.Name, object); err != nil {
		c.check(err)
		return
	}
	callbacks := callbacksOf(s)
	c.check(CheckCallbackNames(s.Name, namesOf(callbacks)))
	for _, callback := range callbacks {
		for variant := range Variants() {
			arguments := BeginCall(s.Name, callback.Name, variant, object)
			result, called := callback.Call(object, &arguments)
			c.check(EndCall(result))
			if !called {
				c.check(fmt.Errorf("%s.%s: upstream has no such callback", s.Name, callback.Name))
			}
		}
	}
}

func callbacksOf(s fields.Struct) []Callback {
	var found []Callback
	for _, callback := range Callbacks {
		if callback.Struct == s.Name {
			found = append(found, callback)
		}
	}
	return found
}

func namesOf(callbacks []Callback) string {
	var names []string
	for _, callback := range callbacks {
		names = append(names, callback.Name)
	}
	return strings.Join(names, ",")
}

func callbackField(s fields.Struct, callback Callback, object unsafe.Pointer) reflect.Value {
	return reflect.NewAt(s.Type, object).Elem().FieldByName(callback.GoName)
}

// newObject allocates the larger of the struct's Go and C sizes, and some more.
func newObject(s fields.Struct) unsafe.Pointer {
	return Allocate(max(int(s.Type.Size()), Size(s.Name)) + 64)
}

// value returns a value of an object at its Go offset.
func value(leaf fields.Leaf, object unsafe.Pointer) reflect.Value {
	return reflect.NewAt(leaf.Type, unsafe.Add(object, leaf.Offset)).Elem()
}

// read returns the bits of a value, zero-extended.
func read(v reflect.Value) uint64 {
	if !v.CanInt() {
		return v.Uint()
	}
	unused := 64 - v.Type().Bits()
	return uint64(v.Int()) << unused >> unused
}

// write sets the value to these bits.
func write(v reflect.Value, bits uint64) {
	if v.CanInt() {
		v.SetInt(int64(bits))
	} else {
		v.SetUint(bits)
	}
}
