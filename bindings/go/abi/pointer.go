// SPDX-License-Identifier: Apache-2.0

package abi

import "unsafe"

// Pointer turns an address that a struct holds into a pointer. It is the address of C memory, or
// of Go memory that is pinned, and valid for as long as the pointer is used; 0 becomes nil.
func Pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// text copies a text that ends in NUL.
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

// list is a view of values in C memory; empty for a count that no memory has room for.
func list[T any](address uintptr, count int64) []T {
	most := ^uintptr(0) >> 1 / unsafe.Sizeof(*new(T))
	if address == 0 || count < 1 || uint64(count) > uint64(most) {
		return nil
	}
	return unsafe.Slice((*T)(Pointer(address)), int(count))
}
