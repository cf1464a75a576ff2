// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package fletching exchanges Arrow data on any device with other libraries of the process, through
// the Arrow C data interface, C stream interface, C device data interface, C device stream interface
// and async C device stream interface. It needs cgo, and no Arrow library.
//
// # Ownership
//
// Schema, Array, DeviceArray, ArrayStream and DeviceArrayStream each own one C struct. Import moves a struct
// in: what is at the address is released afterwards. Export moves it on. Close releases it, and does nothing
// the second time. A collected owner that was not closed is released by the garbage collector and counted
// by Leaks: that is a safety net, at an unknown time. A closed owner is an empty one: what reads it
// returns zeros, and what needs a live one returns an error that is ErrClosed and EINVAL. A nil owner panics,
// as a nil pointer does everywhere in Go: a function that returns an error returns no owner.
//
// A failed import of a struct leaves it with the caller; what a function documents as moved in is released
// once, also when the function fails.
//
// # Memory
//
// What C keeps is memory of C, or pinned memory of Go. No pointer of Go is stored in it. Reading a
// struct needs no call of C, a release needs one. Only a ColumnReader reads buffers, and never those of a device
// that the CPU cannot access.
//
// # Pointers
//
// The address of a struct, which you have as a pointer to a type of cgo, is an unsafe.Pointer: Import, Export, and
// the handler of an async stream. An address inside a struct is a uintptr, because it may be of a device or an
// opaque number, which a Go pointer must not be: buffers, events, handles of streams. abi.Pointer makes an
// unsafe.Pointer of the address of a buffer that the CPU can access.
//
// # Threads
//
// An owner may move between goroutines. Several may read it at once; none may while it is closed,
// exported, or a child is taken. Streams say more. A release callback of ours may be called on any thread of
// C, and closes the owner of a builder there. Send runs the batches on a goroutine of its own, which has
// ended when it returns; an AsyncStream has no goroutine.
//
// # Your functions
//
// A panic never reaches C: it becomes an error, or ends where there is none to return. What C calls must
// not call runtime.Goexit, and so no FailNow of package testing: the methods of a Reader, OnSchema,
// OnTask and OnWarning of AsyncOptions, Make of AsyncBatch, and Close of an owner or an attached value.
// Iterators and Open have a separate goroutine and may.
//
// An address that was read, such as that of a buffer, keeps nothing alive: close the owner behind the
// last use of it, or call runtime.KeepAlive there.
//
// # Errors
//
// An error is a *Error: the errno value that C passes, and the message, which has the text of a foreign
// producer. errors.Is compares it with a syscall.Errno, with ErrClosed and with its cause. A panic in what
// C calls, an iterator or a Close, ends there and becomes EIO.
//
// # Events
//
// A device array may be handed over before a device has filled it. Synchronize, WaitOn and Ready wait for its
// event or ask it, ExportWithEvent records one, and ReleaseAfter closes an array that a kernel still
// reads. The vendors' libraries are loaded when the first event needs them, and never unloaded.
//
// # A Go library is not unloaded
//
// A process cannot unload Go: its runtime has threads, signal handlers and thread-local storage of which
// none ends. A library that is built with -buildmode=c-shared is linked so that dlclose leaves it where it is;
// link one that contains a c-archive with -z nodelete. So every release callback that this package has handed
// out stays callable until the process ends, which is what the C data interface asks for.
package fletching
