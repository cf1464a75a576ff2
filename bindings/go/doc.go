// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package fletching exchanges Arrow data on any device with other libraries in the process, through
// the Arrow C data interface, C stream interface, C device data interface, C device stream interface
// and async C device stream interface. It requires cgo, but no Arrow library.
//
// # Ownership
//
// Schema, Array, DeviceArray, ArrayStream and DeviceArrayStream each own one C struct. Import moves a
// struct into an owner and leaves the source released. Export moves it out. Close releases it; a second
// Close has no effect. If an unclosed owner is garbage-collected, its struct is released and counted by
// Leaks; this is a safety net without a guaranteed time. A closed owner is empty: accessors return
// zero values, and operations that need a live struct return an error that is ErrClosed and EINVAL. A nil
// owner panics like any nil pointer. Functions that return an error return no owner.
//
// A failed import of a struct leaves it with the caller. An argument that a function documents as consumed
// is released once, also if the function fails.
//
// # Memory
//
// Memory that C keeps is C memory or pinned Go memory. No Go pointer is stored in it. Reading a struct
// needs no C call, releasing it needs one. Only a ColumnReader reads buffers, and never buffers that the
// CPU cannot access.
//
// # Pointers
//
// Import, Export, and the handler of an async stream take the address of a struct as an unsafe.Pointer,
// which you have as a pointer to a cgo type. An address inside a struct, such as a buffer, an event or a
// stream handle, is a uintptr, because it may be a device address or an opaque number, which a Go pointer
// must not be. abi.Pointer converts the address of a CPU-accessible buffer to an unsafe.Pointer.
//
// # Threads
//
// An owner may move between goroutines. Several goroutines may read it at once, but not while it is
// closed or exported or a child is taken. Streams have further rules, which their types document. A
// release callback of this package may be called on any C thread, and closes the owner of a builder there.
// Send runs the batches on a separate goroutine, which has ended when Send returns. An AsyncStream has
// no goroutine.
//
// # Your functions
//
// A panic never reaches C: it becomes an error, or is dropped if no error can be returned. Functions that
// C calls must not call runtime.Goexit, and so must not call FailNow of package testing: the methods of a
// Reader; OnSchema, OnTask and OnWarning of AsyncOptions; Make of AsyncBatch; and Close of an owner or an
// attached value. Iterators and Open run on a separate goroutine and may.
//
// An address read from a struct, such as a buffer's, keeps no memory alive: close the owner after the last use of the
// address, or call runtime.KeepAlive there.
//
// # Errors
//
// An error is a *Error: the errno value that C passes, and the message, which contains the foreign producer's message.
// errors.Is compares it with a syscall.Errno, with ErrClosed and with its cause. A panic in a function that C calls, an
// iterator or a Close is recovered and becomes EIO.
//
// # Events
//
// A device array may be handed over before a device has filled it. Synchronize and WaitOn wait for its
// event, and Ready queries it. ExportWithEvent records an event. ReleaseAfter closes an array that a
// kernel still reads. The vendors' libraries are loaded by the first operation on an event that needs
// them, and are never unloaded.
//
// # A Go library is not unloaded
//
// A process cannot unload Go: the threads, signal handlers and thread-local storage of its runtime never
// end. A library built with -buildmode=c-shared is linked so that dlclose does not unload it. Link a
// library that contains a c-archive with -z nodelete. Thus every release callback of this package stays
// callable until the process ends, as the C data interface requires.
package fletching
