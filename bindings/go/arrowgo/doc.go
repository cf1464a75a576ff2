// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package arrowgo converts between package fletching and arrow-go: schemas, arrays, record batches and
// record readers, without copying data. It is a separate module so that package fletching does not
// depend on an Arrow library.
//
// # cdata by address
//
// The structs of arrow-go's package cdata are the C data interface's structs and need no conversion:
//
//	array, err := fletching.ImportArray(unsafe.Pointer(cArray)) // from a *cdata.CArrowArray err =
//	array.Export(unsafe.Pointer(cArray))
//
// If the garbage collector owns the buffers of an array, cdata exports addresses of unpinned Go memory.
// ExportArray and the other functions of this package pin it.
//
// # Ownership
//
// An import consumes its argument. If it fails, the argument is released, once. If it succeeds, the
// argument is released when the last buffer of the arrow-go value is released. An export retains its
// argument until the consumer calls the release callback, and releases it on that thread.
//
// # Errors
//
// Errors are *fletching.Error: errors.Is(err, syscall.EINVAL). A panic in arrow-go becomes the error EIO.
//
// # Limits of arrow-go
//
// arrow-go's cdata drops the order of a dictionary and the metadata of its values, ends a name at U+0000,
// and accepts unions in the layout before Arrow 1.0 as well as in the current one. This package reads and
// writes schemas and arrays itself. It keeps flags, metadata and the order, and rejects a field that
// arrow-go cannot represent with an error that names the field.
//
// # Versions
//
// arrow-go 18.5.2 or later. Earlier versions leak the argument of a failed import.
package arrowgo
