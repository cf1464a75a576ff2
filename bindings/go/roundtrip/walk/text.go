// Package walk reads foreign structs: whether they may be walked at all, and what is in them.
package walk

import (
	"fmt"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Error is an errno value and one line of text.
type Error struct {
	Code int
	Text string
}

func (e *Error) Error() string { return e.Text }

// Unwrap makes errors.Is(err, syscall.EIO) work.
func (e *Error) Unwrap() error { return syscall.Errno(e.Code) }

// Errorf gives an Error.
func Errorf(code syscall.Errno, format string, arguments ...any) error {
	return &Error{int(code), fmt.Sprintf(format, arguments...)}
}

// Text copies a NUL-terminated foreign text; 0 gives "".
func Text(address uintptr) string {
	if address == 0 {
		return ""
	}
	first := (*byte)(abi.Pointer(address))
	size := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(first), size)) != 0 {
		size++
	}
	return string(unsafe.Slice(first, size))
}

// Printable makes one line of valid UTF-8: a byte that is none becomes U+FFFD, a control character
// a space.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// Fit cuts a text to at most size bytes, at the boundary of a character.
func Fit(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}
