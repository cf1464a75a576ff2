// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import (
	"fmt"
	"syscall"

	"github.com/fletching/fletching/bindings/go"
)

func invalid(format string, values ...any) error {
	return fletching.NewError(syscall.EINVAL, fmt.Sprintf(format, values...), nil)
}

// missing returns the error for a nil argument.
func missing(operation, what string) error {
	return invalid("%s: %s is nil: expected one", operation, what)
}

// guarded calls arrow-go and converts its panics and errors.
func guarded[T any](operation string, body func() (T, error)) (value T, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			cause, _ := problem.(error)
			err = fletching.NewError(syscall.EIO, fmt.Sprintf("%s: panic in arrow-go: %v", operation, problem), cause)
		}
	}()
	if value, err = body(); err != nil {
		err = fletching.NewError(syscall.EINVAL, fmt.Sprintf("%s: %v", operation, err), err)
	}
	return value, err
}
