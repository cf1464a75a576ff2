// SPDX-License-Identifier: Apache-2.0

//go:build unix || windows

package abi

import (
	"syscall"
	"testing"
)

// The numbers are from errno.h of the Universal C Runtime.
func TestWindowsErrorNumbers(t *testing.T) {
	for code, number := range map[syscall.Errno]int32{
		syscall.EPERM: 1, syscall.ENOENT: 2, syscall.EINTR: 4, syscall.EIO: 5, syscall.ECHILD: 10, syscall.EAGAIN: 11,
		syscall.ENOMEM: 12, syscall.EACCES: 13, syscall.EBUSY: 16, syscall.ENODEV: 19, syscall.EINVAL: 22,
		syscall.ENOSPC: 28, syscall.EPIPE: 32, syscall.EDOM: 33, syscall.ERANGE: 34, syscall.EDEADLK: 36,
		syscall.ENOSYS: 40, syscall.EBADMSG: 104, syscall.ECANCELED: 105, syscall.ENOTSUP: 129, syscall.EOVERFLOW: 132,
		syscall.EPROTO: 134, syscall.ETIMEDOUT: 138,
	} {
		if found := windowsErrors.number(code); found != number {
			t.Errorf("number of %v: expected %d, got %d", code, number, found)
		}
		if found := windowsErrors.errno(number); found != code {
			t.Errorf("errno of %d: expected %d, got %d", number, code, found)
		}
	}
}

func TestWindowsErrorNumbersOutsideTable(t *testing.T) {
	for code, number := range map[syscall.Errno]int32{250: 250, invented + 4000: EIO} {
		if found := windowsErrors.number(code); found != number {
			t.Errorf("number of %d: expected %d, got %d", code, number, found)
		}
	}
	if found := windowsErrors.errno(250); found != 250 {
		t.Errorf("errno of 250: expected 250, got %d", found)
	}
}
