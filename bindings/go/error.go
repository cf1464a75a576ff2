// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unicode/utf8"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// maxText is the maximum number of bytes read from a foreign string.
const maxText = 4096

// ErrClosed is the cause of errors about an owner that was closed, exported or moved.
var ErrClosed = errors.New("closed or moved: expected a live struct")

// Error is an errno value and a message, as the C interfaces return them. For an error returned by a stream, the code
// is the producer's, and the message is the result of get_last_error with unprintable bytes escaped.
//
// errors.Is finds the code (errors.Is(err, syscall.EINVAL)) and the cause.
type Error struct {
	// Code is at least 1.
	Code syscall.Errno

	// Message names the failure and the expected value. It is empty if the producer sent no message.
	Message string

	cause error
}

// NewError returns an error for a stream to yield. A code below 1, which means success in C, becomes EIO.
// The cause may be nil.
func NewError(code syscall.Errno, message string, cause error) *Error {
	if int(code) < 1 {
		code = syscall.EIO
	}
	return &Error{Code: code, Message: message, cause: cause}
}

// Error returns the message, or the code's description if there is no message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code.Error()
	}
	return e.Message
}

// Unwrap returns the code and the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.cause}
}

func invalid(format string, values ...any) error {
	return NewError(syscall.EINVAL, fmt.Sprintf(format, values...), nil)
}

func closed(operation string) error {
	return NewError(syscall.EINVAL, operation+": "+ErrClosed.Error(), ErrClosed)
}

func noContext(operation string) error { return invalid("%s: context is nil: expected one", operation) }

func noMemory(operation string) error {
	return NewError(syscall.ENOMEM, operation+": no memory", nil)
}

// brokenRule returns the error for a rule broken by another party. The ids are in docs/reference/rules.
func brokenRule(rule, message string) error {
	return invalid("%s (rule %s)", message, rule)
}

// foreign returns the error of a foreign callback. A code below 1 becomes EIO, so the message includes it.
func foreign(code int32, text string) *Error {
	if code < 1 {
		text = strings.TrimPrefix(fmt.Sprintf("%s (code %d)", text, code), " ")
	}
	return NewError(abi.SystemError(max(code, 0)), text, nil)
}

// codeOf returns the number passed to C for a user's error. The error's methods may panic, as they do for a nil *Error.
func codeOf(err error) int32 {
	code := abi.EIO
	_ = guarded(func() error {
		code = abi.ErrorNumberOf(err)
		return nil
	})
	if code < 1 {
		return abi.EIO
	}
	return code
}

// --- Panics -------------------------------------------------------------------------------------

// guarded runs code whose panics must not propagate: they become EIO with the message of the panic.
func guarded(body func() error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			cause, _ := problem.(error)
			err = NewError(syscall.EIO, "panic: "+panicText(problem), cause)
		}
	}()
	return body()
}

// panicText returns a panic's message. Printing its value may panic.
func panicText(problem any) (text string) {
	defer func() {
		if recover() != nil {
			text = "no message"
		}
	}()
	return fmt.Sprint(problem)
}

// discard closes a user's value where no error can be returned.
func discard(value any) {
	_ = guarded(func() error {
		switch value := value.(type) {
		case interface{ Close() error }:
			return value.Close()
		case interface{ Close() }:
			value.Close()
		}
		return nil
	})
}

// --- Foreign strings ----------------------------------------------------------------------------

// printable returns the text with invalid UTF-8 bytes and control characters, except line feed and tab, as \xNN. Text
// longer than 4096 bytes is truncated and ends with "...".
func printable(text string) string {
	cut := len(text) > maxText
	if cut {
		text = text[:wholeCharacters(text[:maxText+1])]
	}
	var result strings.Builder
	for position, r := range text {
		_, size := utf8.DecodeRuneInString(text[position:])
		control := (r < ' ' && r != '\n' && r != '\t') || r == 0x7F
		if control || (r == utf8.RuneError && size == 1) {
			fmt.Fprintf(&result, `\x%02x`, text[position])
			continue
		}
		result.WriteString(text[position : position+size])
	}
	if cut {
		result.WriteString("...")
	}
	return result.String()
}

// wholeCharacters excludes a character that the cut before the last byte would split.
func wholeCharacters(text string) int {
	end := len(text) - 1
	for end > maxText-4 && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// printableC is printable for a C string; it returns "" for NULL.
func printableC(address uintptr) string {
	if address == 0 {
		return ""
	}
	first := (*byte)(abi.Pointer(address))
	length := 0
	for length <= maxText && *(*byte)(unsafe.Add(unsafe.Pointer(first), length)) != 0 {
		length++
	}
	return printable(strings.Clone(unsafe.String(first, length)))
}
