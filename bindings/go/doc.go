// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package fletching exchanges Arrow data on any device with other libraries of the process, through
// the Arrow C data interface, C stream interface, C device data interface and C device stream
// interface. It needs cgo, and no Arrow library.
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
// # Functions of yours
//
// A panic never reaches C: it becomes an error, or ends where there is none to return. What C calls must
// not call runtime.Goexit, and so no FailNow of package testing: the methods of a Reader, OnSchema,
// OnTask and OnWarning of AsyncOptions, Make of AsyncBatch, and Close of an owner or an attached value.
// Iterators and Open have a goroutine of their own and may.
//
// An address that was read, such as that of a buffer, keeps nothing alive: close the owner behind the
// last use of it, or call runtime.KeepAlive there.
//
// # Unloading
//
// A library in Go cannot be unloaded: dlclose of it, or of a library that embeds it, leaves it in the
// process. What it exported stays valid, and its release callbacks may be called later.
package fletching
