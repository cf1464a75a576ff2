// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// `go test` runs the seeds, `go test -fuzz=FuzzMetadata` looks for more.

func FuzzMetadata(f *testing.F) {
	for _, pairs := range []Metadata{nil, {{"k", "v"}}, {{"", "\x00"}, {"a\xff", strings.Repeat("x", 300)}}} {
		block, err := pairs.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(block)
		f.Add(block[:len(block)-1])
	}
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("\xff\xff\xff\x7f\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, block []byte) {
		pairs, err := DecodeMetadata(block)
		if err != nil {
			if pairs != nil || !strings.HasPrefix(err.Error(), "metadata: ") {
				t.Errorf("%v with %d pairs", err, len(pairs))
			}
			return
		}
		again, err := pairs.Encode()
		if err != nil || !bytes.HasPrefix(block, again) || len(again) != pairs.encodedSize() {
			t.Errorf("%x is encoded as %x: %v", block, again, err)
		}
		// The same at an address, without the size of the block.
		atAddress, err := metadataAt(uintptr(unsafe.Pointer(unsafe.SliceData(block))))
		if err != nil || len(atAddress) != len(pairs) {
			t.Errorf("%d pairs, at an address %d: %v", len(pairs), len(atAddress), err)
		}
	})
}

func FuzzPrintable(f *testing.F) {
	for _, text := range []string{"", "größe\n\t", "\xff\xfe", "a\x00b\x7f", strings.Repeat("矢", 1400), strings.Repeat("\xbf", 4097)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		printed := printable(text)
		if !utf8.ValidString(printed) || strings.ContainsFunc(printed, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r == 0x7F
		}) {
			t.Errorf("%q is printed as %q", text, printed)
		}
		if len(printed) > 4*maxText+len("...") || len(text) <= maxText && strings.Count(printed, `\x`) < strings.Count(text, "\x00") {
			t.Errorf("%q is printed as %q", text, printed)
		}
		if again := printable(printed); len(printed) <= maxText && again != printed {
			t.Errorf("%q is printed as %q", printed, again)
		}
		terminated := text + "\x00"
		ofC, _, _ := strings.Cut(text, "\x00")
		if fromC := printableC(uintptr(unsafe.Pointer(unsafe.StringData(terminated)))); fromC != printable(ofC) {
			t.Errorf("%q at an address is printed as %q", ofC, fromC)
		}
	})
}

// treeProgram builds foreign trees from bytes, with any count, list, child and dictionary.
type treeProgram struct {
	code    []byte
	arrays  []*abi.ArrowArray
	schemas []*abi.ArrowSchema
	format  []byte
	kept    []any // memory that the structs reference only by address
}

func (p *treeProgram) next() int {
	if len(p.code) == 0 {
		return 0
	}
	code := p.code[0]
	p.code = p.code[1:]
	return int(code)
}

// below returns the links of a struct. Its children are NULL, new structs, or earlier structs including itself.
func (p *treeProgram) below(depth, earlier int, child, again func(int) uintptr) links {
	var l links
	l.count = int64(p.next() % 4)
	list := make([]uintptr, l.count+1)
	for i := range l.count {
		switch choice := p.next(); {
		case choice%8 == 0:
		case choice%8 == 1:
			list[i] = again(p.next() % earlier)
		case depth < 8:
			list[i] = child(depth + 1)
		}
	}
	p.kept = append(p.kept, list)
	l.list = uintptr(unsafe.Pointer(unsafe.SliceData(list)))
	switch p.next() % 16 {
	case 1:
		l.list = 0
	case 2:
		l.count = -1
	case 3:
		l.count = maxStructs + 1
	case 4:
		if depth < 8 {
			l.dictionary = child(depth + 1)
		}
	}
	return l
}

func (p *treeProgram) array(depth int) uintptr {
	raw := &abi.ArrowArray{}
	p.arrays = append(p.arrays, raw)
	l := p.below(depth, len(p.arrays), p.array, func(i int) uintptr { return uintptr(unsafe.Pointer(p.arrays[i])) })
	raw.NChildren, raw.Children, raw.Dictionary = l.count, l.list, l.dictionary
	raw.Length, raw.NBuffers = int64(p.next()), int64(p.next()%3)
	buffers := make([]uintptr, 3)
	p.kept = append(p.kept, buffers)
	raw.Buffers = uintptr(unsafe.Pointer(unsafe.SliceData(buffers)))
	if p.next()%8 != 1 {
		raw.Release = 1 // never called: only the root is released
	}
	return uintptr(unsafe.Pointer(raw))
}

func (p *treeProgram) schema(depth int) uintptr {
	raw := &abi.ArrowSchema{Format: uintptr(unsafe.Pointer(unsafe.SliceData(p.format)))}
	p.schemas = append(p.schemas, raw)
	l := p.below(depth, len(p.schemas), p.schema, func(i int) uintptr { return uintptr(unsafe.Pointer(p.schemas[i])) })
	raw.NChildren, raw.Children, raw.Dictionary = l.count, l.list, l.dictionary
	if p.next()%8 == 1 {
		raw.Format = 0
	}
	if p.next()%8 != 1 {
		raw.Release = 1
	}
	return uintptr(unsafe.Pointer(raw))
}

type countedRelease struct{ calls int }

func (c *countedRelease) Release(*abi.ArrowArray) { c.calls++ }

type countedSchemaRelease struct{ calls int }

func (c *countedSchemaRelease) Release(*abi.ArrowSchema) { c.calls++ }

// A foreign tree of any shape is read, copied and released, or rejected. Only its root is released, once.
func FuzzTree(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 7, 7, 0, 0, 0, 0, 0})
	f.Add([]byte{3, 2, 1, 0, 0, 0, 2, 0, 1, 0, 3})
	f.Add(bytes.Repeat([]byte{3, 2, 4}, 40))
	f.Add([]byte{1, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, code []byte) {
		if len(code) > 200 {
			return
		}
		fuzzArrays(t, &treeProgram{code: code})
		fuzzSchemas(t, &treeProgram{code: code, format: []byte("i\x00")})
	})
}

func fuzzArrays(t *testing.T, p *treeProgram) {
	defer runtime.KeepAlive(p)
	p.array(0)
	root, release := *p.arrays[0], &countedRelease{}
	root.Release, root.PrivateData = callbacks.ArrowArrayReleaseStub(), callbacks.NewHandle(release)
	defer callbacks.DeleteHandle(root.PrivateData)
	array, err := ImportArray(unsafe.Pointer(&root))
	if err != nil {
		t.Fatal(err)
	}
	readArray(array.Root(), 0)
	shared, err := array.Share()
	if err != nil {
		t.Fatal(err)
	}
	if view, err := shared.View(); err == nil {
		if child, err := view.TakeChild(0); err == nil {
			child.Close()
		}
		view.Close()
	}
	for i := -1; i < 3; i++ {
		if column, err := shared.Column(i); err == nil {
			column.Close()
		}
	}
	if release.calls != 0 {
		t.Error("released too early")
	}
	if shared.Close(); release.calls != 1 {
		t.Errorf("released %d times", release.calls)
	}
}

// readArray limits the depth because cycles have no end.
func readArray(view ArrayView, depth int) {
	_, _ = view.Length(), view.BufferAddresses()
	for i := range view.NumChildren() {
		if depth < 10 {
			readArray(view.Child(i), depth+1)
		}
	}
	_ = view.Dictionary().Length()
}

func fuzzSchemas(t *testing.T, p *treeProgram) {
	defer runtime.KeepAlive(p)
	p.schema(0)
	root, release := *p.schemas[0], &countedSchemaRelease{}
	root.Release, root.PrivateData = callbacks.ArrowSchemaReleaseStub(), callbacks.NewHandle(release)
	defer callbacks.DeleteHandle(root.PrivateData)
	schema, err := ImportSchema(unsafe.Pointer(&root))
	if err != nil {
		t.Fatal(err)
	}
	copied, copyError := schema.Root().Builder()
	shared, err := schema.Share()
	if err != nil {
		t.Fatal(err)
	}
	if view, err := shared.View(); err == nil {
		if copyError != nil {
			t.Errorf("it can be shown, and not copied: %v", copyError)
		} else if built, err := copied.Build(); err != nil {
			t.Errorf("it can be shown and copied, and not built: %v", err)
		} else {
			built.Close()
		}
		view.Close()
	}
	if shared.Close(); release.calls != 1 {
		t.Errorf("released %d times", release.calls)
	}
}
