// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package fletching exchanges Arrow data on any device with other libraries of the process, through
// the Arrow C data interface, C stream interface, C device data interface, C device stream interface
// and async C device stream interface. It needs cgo, and no Arrow library.
//
// # Ownership
//
// Schema, Array, DeviceArray, ArrayStream and DeviceArrayStream each own one C struct. Close releases
// it, Export moves it on. A collected owner that was not closed is released by the garbage collector and
// counted by Leaks. A closed owner is an empty one: what reads it returns zeros, and what needs a live
// one returns an error that is ErrClosed and EINVAL.
//
// # Memory
//
// What C keeps is memory of C, or pinned memory of Go. No pointer of Go is stored in it. Reading a
// struct needs no call of C, a release needs one.
//
// # Threads
//
// An owner may move between goroutines. Several may read it at once; none may while it is closed,
// exported, or a child is taken. Streams say more.
//
// SendAsync runs the batches on a goroutine of its own, which has ended when it returns. An AsyncStream
// has no goroutine.
package fletching
