// SPDX-License-Identifier: Apache-2.0

package abi

import "unsafe"

// Pointer turns an address that a struct holds into a pointer. The address is that of C memory, or
// of Go memory that is pinned, and valid for as long as the pointer is used; 0 becomes nil.
func Pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}
