// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

const (
	// Maximum nesting depth: structs are walked recursively.
	maxDepth = 256

	// Maximum number of structs in one tree, which is more columns than any table has. It detects
	// uninitialized counts and cyclic structs.
	maxStructs = 1 << 22
)

// links contains the references of a struct to its nested structs.
type links struct {
	released    bool
	count       int64
	list        uintptr
	dictionary  uintptr
	privateData uintptr
}

func linksOf[B base](node *B) links {
	switch node := any(node).(type) {
	case *abi.ArrowSchema:
		return links{node.Release == 0, node.NChildren, node.Children, node.Dictionary, node.PrivateData}
	case *abi.ArrowArray:
		return links{node.Release == 0, node.NChildren, node.Children, node.Dictionary, node.PrivateData}
	}
	return links{released: true}
}

// children returns the addresses of the children. It returns none if the list is NULL, the count is
// negative or above maxStructs, or the struct is released.
func (l links) children() []uintptr {
	if l.released || l.list == 0 || l.count < 1 || l.count > maxStructs {
		return nil
	}
	return unsafe.Slice((*uintptr)(abi.Pointer(l.list)), int(l.count))
}

func at[B base](address uintptr) *B {
	return (*B)(abi.Pointer(address))
}

// --- Views --------------------------------------------------------------------------------------

// view reads a struct that an owner keeps alive: the owner's struct or a nested one. It reads as an empty
// struct if the struct is released or the owner is closed.
type view[B base] struct {
	owner   interface{ IsReleased() bool } // for a struct nested in a nested struct: the view of the latter
	raw     *B
	isBelow bool // the struct is nested in the owner's struct
}

// IsReleased reports whether the view is empty: the struct does not exist, was moved out, or the owner was
// closed.
func (v view[B]) IsReleased() bool {
	defer runtime.KeepAlive(v.owner)
	return v.raw == nil || v.owner.IsReleased() || linksOf(v.raw).released
}

// NumChildren returns the number of children. It returns 0 if the list is NULL or the count is negative
// or above 2^22.
func (v view[B]) NumChildren() int {
	return read(v, func(raw *B) int { return len(linksOf(raw).children()) })
}

func (v view[B]) child(index int) view[B] {
	return read(v, func(raw *B) view[B] {
		children := linksOf(raw).children()
		if index < 0 || index >= len(children) {
			return view[B]{}
		}
		return v.below(children[index])
	})
}

func (v view[B]) dictionary() view[B] {
	return read(v, func(raw *B) view[B] { return v.below(linksOf(raw).dictionary) })
}

// below returns a view of a struct listed by this one. After this struct is moved out, nested views read as released,
// because their memory then depends on the new owner.
func (v view[B]) below(address uintptr) view[B] {
	if v.isBelow {
		return view[B]{v, at[B](address), true}
	}
	return view[B]{v.owner, at[B](address), true}
}

// read returns a field, or the zero value for an empty struct.
func read[B base, T any](v view[B], field func(*B) T) (value T) {
	if !v.IsReleased() {
		value = field(v.raw)
	}
	runtime.KeepAlive(v.owner)
	return value
}

// --- Moving children out ------------------------------------------------------------------------

// childToTake returns a child that is not released.
func childToTake[B base](parent *B, index int) (*B, error) {
	if parent == nil || linksOf(parent).released {
		return nil, closed("TakeChild")
	}
	children := linksOf(parent).children()
	if index < 0 || index >= len(children) {
		return nil, invalid("TakeChild: child %d: no such child: expected an index below %d", index, len(children))
	}
	return toTake(at[B](children[index]), func() string { return fmt.Sprintf("TakeChild: child %d", index) })
}

func dictionaryToTake[B base](parent *B) (*B, error) {
	if parent == nil || linksOf(parent).released {
		return nil, closed("TakeDictionary")
	}
	return toTake(at[B](linksOf(parent).dictionary), func() string { return "TakeDictionary" })
}

func toTake[B base](below *B, what func() string) (*B, error) {
	if below == nil {
		return nil, invalid("%s: NULL: expected a struct", what())
	}
	if linksOf(below).released {
		return nil, invalid("%s: released or moved out: expected a live struct", what())
	}
	return below, nil
}

// --- The walk through a foreign struct ----------------------------------------------------------

// countTree returns the number of structs in the tree. It checks that each of them can be exported.
func countTree[B base](operation string, root *B) (int, error) {
	structs := 0
	err := walk(operation, root, func(node *B) error {
		structs++
		schema, isSchema := any(node).(*abi.ArrowSchema)
		switch {
		case linksOf(node).released:
			return errors.New("is released or moved out")
		case isSchema && schema.Format == 0:
			return errors.New("has format NULL")
		}
		return nil
	})
	return structs, err
}

// walk visits a struct and its nested structs, parents before children. It does not visit structs nested in a
// released struct.
func walk[B base](operation string, root *B, visit func(*B) error) error {
	structs := 0
	if why := walkBelow(root, 0, &structs, visit); why != nil {
		return invalid("%s: the struct or a descendant %v", operation, why)
	}
	return nil
}

func walkBelow[B base](node *B, depth int, structs *int, visit func(*B) error) error {
	*structs++
	switch {
	case node == nil:
		return errors.New("is NULL")
	case depth == maxDepth:
		return fmt.Errorf("is nested too deep: expected at most %d levels", maxDepth)
	case *structs > maxStructs:
		return fmt.Errorf("is one of too many: expected at most %d", maxStructs)
	}
	if why := visit(node); why != nil {
		return why
	}
	below := linksOf(node)
	switch {
	case below.released:
		return nil
	case below.count < 0 || below.count > maxStructs:
		return fmt.Errorf("has n_children out of range: expected 0 to %d, got %d", maxStructs, below.count)
	case below.count > 0 && below.list == 0:
		return fmt.Errorf("has children NULL: expected a list of %d", below.count)
	}
	for _, child := range below.children() {
		if why := walkBelow(at[B](child), depth+1, structs, visit); why != nil {
			return why
		}
	}
	if below.dictionary == 0 {
		return nil
	}
	return walkBelow(at[B](below.dictionary), depth+1, structs, visit)
}
