// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "runtime.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// symbol is a function of a library. One that is required has to be there.
type symbol struct {
	name     string
	required bool
}

// library is what the tables have of a vendor's library.
type library struct {
	title   string
	names   map[string][]string // by GOOS, in the order in which they are tried
	symbols []symbol
	mutex   sync.Mutex
	loaded  atomic.Bool
}

// load fills the table of the functions, which begins with the name of the library. The library is
// never unloaded. What did not work is tried again by the next call.
//
// Errors: ENOENT, with the names and the reasons, when there is no library; ENOSYS when it lacks a
// function that every consumer needs.
func (l *library) load(table unsafe.Pointer) error {
	if l.loaded.Load() {
		return nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.loaded.Load() {
		return nil
	}
	found, err := openLibrary(l.title, l.names[runtime.GOOS])
	if err != nil {
		return err
	}
	slots := make([]unsafe.Pointer, 1, 1+len(l.symbols))
	for _, symbol := range l.symbols {
		function, err := found.symbol(symbol.name)
		if err != nil && symbol.required {
			return err
		}
		slots = append(slots, function)
	}
	slots[0] = unsafe.Pointer(C.CString(found.name))
	copy(unsafe.Slice((*unsafe.Pointer)(table), len(slots)), slots)
	l.loaded.Store(true)
	return nil
}

// openedLibrary is never closed.
type openedLibrary struct {
	title, name string
	handle      unsafe.Pointer
}

// openLibrary opens the library under the first name that works. One that is loaded already is
// preferred, whatever its name: the handles of one version mean nothing to another.
//
// Errors: ENOENT, with every name and its reason.
func openLibrary(title string, names []string) (*openedLibrary, error) {
	var reasons []string
	for _, loaded := range []bool{true, false} {
		for _, name := range names {
			text := C.CString(name)
			defer C.free(unsafe.Pointer(text))
			var failure C.struct_failure
			if handle := C.fletching_open(text, C.bool(loaded), &failure); handle != nil {
				return &openedLibrary{title, name, handle}, nil
			}
			if !loaded {
				reasons = append(reasons, errorOf(&failure).Error())
			}
		}
	}
	if len(names) == 0 {
		return nil, NewError(syscall.ENOENT, title+": no library for this system", nil)
	}
	return nil, NewError(syscall.ENOENT, fmt.Sprintf(
		"%s: cannot load %s; hint: install it, or add its folder to the library search path (%s)",
		title, strings.Join(names, ", "), strings.Join(reasons, "; ")), nil)
}

// symbol is a function of the library. Errors: ENOSYS when the library lacks it.
func (l *openedLibrary) symbol(name string) (unsafe.Pointer, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if function := C.fletching_symbol(l.handle, text); function != nil {
		return function, nil
	}
	return nil, NewError(syscall.ENOSYS,
		fmt.Sprintf("%s: %s has no %s; hint: install a newer version", l.title, l.name, name), nil)
}
