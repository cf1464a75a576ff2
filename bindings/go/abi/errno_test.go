// SPDX-License-Identifier: Apache-2.0

//go:build unix || windows

package abi_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
)

func TestErrorNumberOf(t *testing.T) {
	for _, each := range []struct {
		err      error
		expected int32
	}{
		{errors.ErrUnsupported, abi.ENOSYS},
		{fmt.Errorf("wrapped: %w", errors.ErrUnsupported), abi.ENOSYS},
		{fs.ErrInvalid, abi.EINVAL},
		{context.Canceled, abi.ECANCELED},
		{context.DeadlineExceeded, abi.ECANCELED},
		{syscall.ENOTSUP, abi.ENOTSUP}, // matches errors.ErrUnsupported but keeps its number
		{fmt.Errorf("wrapped: %w", syscall.ENODEV), abi.ENODEV},
		{syscall.Errno(0), abi.EIO},
		{errors.New("any other"), abi.EIO},
	} {
		if found := abi.ErrorNumberOf(each.err); found != each.expected {
			t.Errorf("%v: %d, expected %d", each.err, found, each.expected)
		}
	}
}

func TestErrorNumbersRoundTripThroughSyscall(t *testing.T) {
	for number, code := range map[int32]syscall.Errno{
		abi.EINVAL: syscall.EINVAL, abi.ENOSYS: syscall.ENOSYS, abi.ECANCELED: syscall.ECANCELED, 250: 250,
	} {
		if found := abi.SystemError(number); found != code {
			t.Errorf("SystemError(%d): %d, expected %d", number, found, code)
		}
		if found := abi.ErrorNumber(code); found != number {
			t.Errorf("ErrorNumber(%d): %d, expected %d", code, found, number)
		}
	}
}
