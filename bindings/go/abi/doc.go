// SPDX-License-Identifier: Apache-2.0

// Package abi declares the Arrow C data, stream, device data, device stream and async device stream
// interfaces and DLPack: the structs as C lays them out, the constants, and what is known of each
// device type and of each data-type code.
// It needs neither cgo nor any other package. Methods of the structs move them and read what they point
// to; package callbacks, which needs cgo, calls their callbacks and releases them.
//
// # Addresses
//
// Every pointer of C, to data or to a function, is a uintptr here. Its target belongs to C,
// and the garbage collector must not look at it: foreign structs may hold stale addresses, and
// private data that is not an address at all, which a pointer type would turn into a crash. A uintptr
// keeps nothing alive: store addresses of C memory only, or of Go memory that is pinned;
// callbacks.CheckPinned finds other Go memory. Use the methods, or [Pointer], to follow an address. A
// callback is the address of a C function. Each has a distinct type, so that it cannot be assigned to
// another field.
//
// Since no struct holds a Go pointer, a struct in Go memory may be passed to C as it is.
//
// # Ownership
//
// Copying a struct in Go copies only the bits. MoveTo moves an owner: the source is
// released afterwards. A struct whose Release is 0 is released, and its methods read nothing. Structs
// without MoveTo stay where they are: the other side knows them by their address.
//
// # Layouts
//
// Each file of structs is for one class of targets, with padding where C has it and the compiler of
// Go would not put it: on arm, mips and 32-bit Windows, C aligns int64 to 8, Go to 4. Assertions
// refuse to compile a struct that is laid out in another way. Go aligns a whole struct to 4 there
// at most; C code that relies on 8 needs structs allocated by C, or by new, which aligns to 8 what
// has a multiple of 8 as its size. GOARCH=wasm is refused: its pointers have 8 bytes, C's pointers
// on wasm32 have 4.
//
// # Threads
//
// The structs are plain memory, and it is the caller who serializes access to one. Everything else
// here may be used from any goroutine.
package abi
