// SPDX-License-Identifier: Apache-2.0

package abi

import "unsafe"

// Pointer converts an address from a struct to a pointer; 0 becomes nil. The address must be in C memory
// or in pinned Go memory, which must stay valid while the pointer is used.
func Pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// text copies a NUL-terminated string.
func text(address uintptr) string {
	if address == 0 {
		return ""
	}
	first := Pointer(address)
	length := 0
	for *(*byte)(unsafe.Add(first, length)) != 0 {
		length++
	}
	return string(unsafe.Slice((*byte)(first), length))
}

// list returns a view of values in C memory. It is empty if the count exceeds the address space.
func list[T any](address uintptr, count int64) []T {
	most := ^uintptr(0) >> 1 / unsafe.Sizeof(*new(T))
	if address == 0 || count < 1 || uint64(count) > uint64(most) {
		return nil
	}
	return unsafe.Slice((*T)(Pointer(address)), int(count))
}
