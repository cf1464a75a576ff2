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
	// How many levels of structs there may be: they are walked by recursion.
	maxDepth = 256

	// How many structs there may be in one tree. No table has as many columns; a count that was
	// never set does, and so do structs that are listed below themselves.
	maxStructs = 1 << 22
)

// links is how a struct points to the structs below it.
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

// children are the addresses of the children. None for a list that is NULL, for a count that is
// negative or above maxStructs, and for a released struct.
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

// view reads a struct that an owner keeps alive: its own, or one below it. Of a struct that is
// released, and after the owner was closed, it reads what an empty one has.
type view[B base] struct {
	owner   interface{ IsReleased() bool } // of a struct below another one that is below: the view of that
	raw     *B
	isBelow bool // the owner's own struct is another one
}

// IsReleased reports whether there is nothing to read: no such struct, moved out, or the owner was
// closed.
func (v view[B]) IsReleased() bool {
	defer runtime.KeepAlive(v.owner)
	return v.raw == nil || v.owner.IsReleased() || linksOf(v.raw).released
}

// NumChildren returns the number of children; 0 where the struct has no list of them, and for a
// count that is negative or above 2^22.
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

// below is a view of a struct that this one lists. When this one is moved out, nothing below it is
// read any more: it lives as long as the one that it was moved to.
func (v view[B]) below(address uintptr) view[B] {
	if v.isBelow {
		return view[B]{v, at[B](address), true}
	}
	return view[B]{v.owner, at[B](address), true}
}

// read returns a field, or zero of an empty struct.
func read[B base, T any](v view[B], field func(*B) T) (value T) {
	if !v.IsReleased() {
		value = field(v.raw)
	}
	runtime.KeepAlive(v.owner)
	return value
}

// --- Moving children out ------------------------------------------------------------------------

// childToTake is the child of a struct that is not released.
func childToTake[B base](parent *B, index int) (*B, error) {
	if parent == nil || linksOf(parent).released {
		return nil, closed("take_child")
	}
	children := linksOf(parent).children()
	if index < 0 || index >= len(children) {
		return nil, invalid("take_child: child %d: no such child: expected an index below %d", index, len(children))
	}
	return toTake(at[B](children[index]), func() string { return fmt.Sprintf("take_child: child %d", index) })
}

func dictionaryToTake[B base](parent *B) (*B, error) {
	if parent == nil || linksOf(parent).released {
		return nil, closed("take_dictionary")
	}
	return toTake(at[B](linksOf(parent).dictionary), func() string { return "take_dictionary" })
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

// countTree returns how many structs there are from here downwards, each of which can be shown to
// others.
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

// walk visits a struct and every one below it, a parent before its children. Below a released struct
// nothing is visited.
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
