// SPDX-License-Identifier: Apache-2.0

// Package abi declares the Arrow C data, stream, device data, device stream and async device stream
// interfaces and DLPack: the structs in their C layout, the constants, and the properties of each device
// type and data-type code.
// It requires neither cgo nor any other package. The methods of the structs move them and read the memory
// that they point to. Package callbacks, which requires cgo, calls their callbacks and releases them.
//
// # Addresses
//
// Every C pointer, to data or to a function, is a uintptr here. Its target belongs to C, and the garbage
// collector must not follow it: foreign structs may contain stale addresses, and private data that is not
// an address, either of which would crash the program if it had a pointer type. A uintptr does not keep
// its target alive, so store only addresses of C memory or of pinned Go memory; callbacks.CheckPinned
// finds other Go memory. Use the methods, or [Pointer], to follow an address. A callback is the address
// of a C function. Each callback has a distinct type, so that it cannot be assigned to another field.
//
// Since no struct contains a Go pointer, a struct in Go memory may be passed to C.
//
// # Ownership
//
// Copying a struct in Go copies only the bits. MoveTo transfers ownership and leaves the source released.
// A struct whose Release is 0 is released, and its methods read no memory. Structs without MoveTo must
// not be moved: the other side identifies them by their address.
//
// # Layouts
//
// Each file of structs covers one class of targets. It adds padding where C aligns more strictly than Go:
// on arm, mips and 32-bit Windows, C aligns int64 to 8, Go to 4. Assertions make the build fail if a
// layout differs. On these targets Go aligns a whole struct to 4 at most. C code that relies on 8 needs
// structs allocated by C, or by new, which aligns to 8 if the size is a multiple of 8. GOARCH=wasm is
// rejected: its pointers have 8 bytes, but C pointers on wasm32 have 4.
//
// # Threads
//
// The structs are plain memory, and the caller must serialize access to each of them. Everything else
// in this package may be used from any goroutine.
package abi
