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

// More of a foreign text is never read.
const maxText = 4096

// ErrClosed is the cause of the errors of an owner that was closed, exported or moved.
var ErrClosed = errors.New("closed or moved: expected a live struct")

// Error is an errno value and a message, as the C interfaces return them. Of an error that a stream
// returned, the code is the producer's and the message is what its get_last_error said, fit to
// print.
//
// errors.Is finds the code (errors.Is(err, syscall.EINVAL)) and the cause.
type Error struct {
	// Code is at least 1.
	Code syscall.Errno

	// Message names the failure and the expected value. Empty when the producer sent no message.
	Message string

	cause error
}

// NewError returns an error for your stream to yield. A code below 1, which means success in
// C, becomes EIO. The cause may be nil.
func NewError(code syscall.Errno, message string, cause error) *Error {
	if int(code) < 1 {
		code = syscall.EIO
	}
	return &Error{Code: code, Message: message, cause: cause}
}

// Error returns the message, or the text of the code without a message.
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

// A rule that another party broke. The ids are those of docs/reference/rules.
func brokenRule(rule, message string) error {
	return invalid("%s (rule %s)", message, rule)
}

// The result of a foreign callback. A code below 1 is in the text, because it becomes EIO.
func foreign(code int32, text string) *Error {
	if code < 1 {
		text = strings.TrimPrefix(fmt.Sprintf("%s (code %d)", text, code), " ")
	}
	return NewError(abi.SystemError(max(code, 0)), text, nil)
}

// codeOf is the number that C gets for an error of the user's, whose methods may panic: those of an *Error that
// is nil do.
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

// guarded runs code whose panics must not pass: they become EIO and the message of the panic.
func guarded(body func() error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			cause, _ := problem.(error)
			err = NewError(syscall.EIO, "panic: "+panicText(problem), cause)
		}
	}()
	return body()
}

// A value of a panic may panic when it is printed.
func panicText(problem any) (text string) {
	defer func() {
		if recover() != nil {
			text = "no message"
		}
	}()
	return fmt.Sprint(problem)
}

// discard closes a value of the user's where no error can be returned.
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

// --- Foreign texts ------------------------------------------------------------------------------

// printable is the text with every byte that is not UTF-8 and every control character, other than a
// line feed and a tab, as \xNN. It ends with "..." when it was longer than 4096 bytes.
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

// A character that the cut before the last byte would split is left out.
func wholeCharacters(text string) int {
	end := len(text) - 1
	for end > maxText-4 && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// printableC is the same for a text of C; empty for NULL.
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
