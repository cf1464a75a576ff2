// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package arrowgo converts between package fletching and arrow-go: schemas, arrays, record batches and
// record readers, without a copy of the data. It is a separate module, so that package fletching
// depends on no Arrow library.
//
// # cdata by address
//
// The structs of arrow-go's package cdata are those of the C data interface, and need no conversion:
//
//	array, err := fletching.ImportArray(unsafe.Pointer(cArray)) // of a *cdata.CArrowArray
//	err = array.Export(unsafe.Pointer(cArray))
//
// What cdata exports of an array whose buffers the garbage collector owns are addresses of Go memory
// that nothing pins. ExportArray and the other functions here pin it.
//
// # Ownership
//
// An import consumes its argument, also when it fails: then the argument is released, once. The arrow-go value
// releases it when its last buffer is released. An export retains its argument, which is released by the
// consumer's release callback, on the thread where that is called.
//
// # Errors
//
// Errors are *fletching.Error: errors.Is(err, syscall.EINVAL). A panic of arrow-go becomes an error, EIO.
//
// # What arrow-go cannot represent
//
// arrow-go's cdata drops the order of a dictionary and the metadata of its values, ends a name at U+0000, and reads
// unions in the layout before Arrow 1.0 together with the current one. This package reads and writes schemas and
// arrays itself: it keeps flags, metadata and the order, and refuses with the field what arrow-go has no room for.
//
// # Versions
//
// arrow-go 18.5.2 or later. Earlier ones keep the argument of a failed import.
package arrowgo
