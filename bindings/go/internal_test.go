// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

func TestPrintableEscapesForeignText(t *testing.T) {
	for text, expected := range map[string]string{
		"a\tb\nü":                             "a\tb\nü",
		"a\xff\x00\x7f\x1bb":                  `a\xff\x00\x7f\x1bb`,
		"\uFFFD":                              "\uFFFD",
		strings.Repeat("x", maxText):          strings.Repeat("x", maxText),
		strings.Repeat("x", maxText+1):        strings.Repeat("x", maxText) + "...",
		strings.Repeat("x", maxText-1) + "ü!": strings.Repeat("x", maxText-1) + "...",
		strings.Repeat("\xbf", maxText+1):     strings.Repeat(`\xbf`, maxText-4) + "...",
	} {
		if printed := printable(text); printed != expected {
			t.Errorf("%q is printed as %q", text, printed)
		}
	}
	long := []byte(strings.Repeat("x", maxText+9) + "\x00")
	if printed := printableC(uintptr(unsafe.Pointer(&long[0]))); len(printed) != maxText+3 {
		t.Errorf("%d bytes of a text of C", len(printed))
	}
	if printableC(0) != "" {
		t.Error("NULL is a text")
	}
}

func TestForeignInvalidErrnoIsAddedToMessage(t *testing.T) {
	for _, c := range []struct {
		code     int32
		text     string
		expected syscall.Errno
		message  string
	}{
		{-3, "lost", syscall.EIO, "lost (code -3)"},
		{0, "", syscall.EIO, "(code 0)"},
		{7, "late", 7, "late"},
		{int32(syscall.ENOENT), "", syscall.ENOENT, ""},
	} {
		err := foreign(c.code, c.text)
		if err.Code != c.expected || err.Message != c.message || !errors.Is(err, c.expected) || err.Error() == "" {
			t.Errorf("%+v: %+v", c, err)
		}
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int32
	}{
		{errors.New("x"), abi.EIO},
		{fmt.Errorf("x: %w", errors.ErrUnsupported), abi.ENOSYS},
		{NewError(0, "x", errors.ErrUnsupported), abi.EIO},
		{os.ErrInvalid, abi.EINVAL},
		{fmt.Errorf("x: %w", syscall.ENOSPC), abi.ENOSPC},
		{fmt.Errorf("x: %w", NewError(syscall.EPERM, "", syscall.ENOSPC)), abi.EPERM},
		{&Error{}, abi.EIO},
		{syscall.Errno(0), abi.EIO},
	} {
		if code := codeOf(c.err); code != c.code {
			t.Errorf("%v: expected %d, got %d", c.err, c.code, code)
		}
	}
}

type unprintable struct{}

func (u unprintable) Error() string { panic(u) }

func TestGuardedReturnsPanicText(t *testing.T) {
	cause := errors.New("cause")
	for text, problem := range map[string]any{
		"panic: number 7": "number 7", "panic: cause": cause, "panic: no message": unprintable{},
	} {
		err := guarded(func() error { panic(problem) })
		if !strings.HasPrefix(err.Error(), text) || codeOf(err) != abi.EIO {
			t.Errorf("%v: %v", problem, err)
		}
	}
	if err := guarded(func() error { panic(cause) }); !errors.Is(err, cause) {
		t.Error("the cause is missing")
	}
}

func TestNoMemoryError(t *testing.T) {
	if err := noMemory("view"); !errors.Is(err, syscall.ENOMEM) || err.Error() != "view: no memory" {
		t.Error(err)
	}
}

// The limit itself is allowed, for reading and for building.
func TestStructCountLimit(t *testing.T) {
	for _, more := range []int{0, 1} {
		var texts []byte
		buffers := 0
		for name, counted := range map[string]func(structs *int) error{
			"read": func(structs *int) error {
				return walkBelow(&abi.ArrowArray{Release: 1}, 0, structs, func(*abi.ArrowArray) error { return nil })
			},
			"array":  func(structs *int) error { return (&ArrayBuilder{}).count(structs, &buffers, 0) },
			"schema": func(structs *int) error { return (&SchemaBuilder{Format: "i"}).collect(structs, &texts, 0) },
		} {
			structs := maxStructs - 1 + more // counted before this one
			if err := counted(&structs); (err != nil) != (more > 0) || err != nil && !strings.Contains(err.Error(), "too many") {
				t.Errorf("%s: %d more: %v", name, more, err)
			}
		}
	}
}

func TestNewBlockRejectsOverflowingSize(t *testing.T) {
	half := math.MaxInt / 2 / int(unsafe.Sizeof(uintptr(0))) // the pointers alone need half of the memory
	for _, counts := range [][3]int{{1, math.MaxInt / 4, 0}, {math.MaxInt / 8, 0, 0}, {1, 0, math.MaxInt}, {1, half, math.MaxInt / 2}} {
		if _, ok := newBlock[abi.ArrowArray](counts[0], counts[1], counts[2], 0, 0); ok {
			t.Errorf("%v: expected no memory", counts)
		}
	}
}

// A copy owns nothing. Otherwise it could close the next owner of the slot, because slots are reused.
func TestOwnerCopyIsReleased(t *testing.T) {
	array := must((&ArrayBuilder{Length: 1}).Build(nil))
	copied := new(Array)
	reflect.ValueOf(copied).Elem().Set(reflect.ValueOf(array).Elem()) // like `*copied = *array`, which go vet reports
	if !copied.IsReleased() || copied.Length() != 0 || copied.Export(unsafe.Pointer(new(abi.ArrowArray))) == nil {
		t.Error("the copy owns the struct")
	}
	array.Close()
	other := must((&ArrayBuilder{Length: 2}).Build(nil))
	defer other.Close()
	copied.Close()
	if other.IsReleased() || other.Length() != 2 {
		t.Error("the copy has closed another owner's array")
	}
}
