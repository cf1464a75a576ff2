package walk_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/internal/fake"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

// A bad pair of structs, and what the error has to say.
var refused = []struct {
	line  string
	spoil func(*abi.ArrowSchema, *abi.ArrowArray)
}{
	{"/ schema is released", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.Release = 0 }},
	{"/ array is released", func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.Release = 0 }},
	{"/ schema.format is NULL", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.Format = 0 }},
	{"/ schema.n_children is -1", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.NChildren = -1 }},
	{"/ schema.n_children is 1, and the pointer to them is NULL", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.NChildren = 1 }},
	{"/ schema.children[0] is NULL", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { give(s, nil) }},
	{"/0 schema is released", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { give(s, new(abi.ArrowSchema)) }},
	{"/0/0 schema.format is NULL", func(s *abi.ArrowSchema, _ *abi.ArrowArray) {
		child, grandchild := fake.Schema("+s"), fake.Schema("")
		grandchild.Format = 0
		give(child, grandchild)
		give(s, child)
	}},
	{"schema is nested deeper than 64", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { give(s, s) }},
	{"/d schema is released", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.Dictionary = keep(new(abi.ArrowSchema)) }},
	{"/ has a dictionary in only one of schema and array", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.Dictionary = keep(fake.Schema("n")) }},
	{"/ array.n_children is 0, schema.n_children is 1", func(s *abi.ArrowSchema, _ *abi.ArrowArray) { give(s, fake.Schema("n")) }},
	{"/ array.n_buffers is 2, and the pointer to them is NULL", func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.NBuffers = 2 }},
	{"/ array.n_buffers is -1", func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.NBuffers = -1 }},
	{"/ array.length is -1", func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.Length = -1 }},
	{"/ array.offset is -1", func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.Offset = -1 }},
	{"/ array.null_count is -2", func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.NullCount = -2 }},
}

func TestCheckRefuses(t *testing.T) {
	for _, test := range refused {
		schema, array := fake.Schema("+s"), fake.Array()
		if err := walk.Check(schema, &array.Array); err != nil {
			t.Fatal(err)
		}
		test.spoil(schema, &array.Array)
		if err := walk.Check(schema, &array.Array); err == nil || !strings.Contains(err.Error(), test.line) {
			t.Errorf("%v, expected %s", err, test.line)
		}
		if _, err := walk.Describe(schema, array); err == nil || !strings.Contains(err.Error(), test.line) {
			t.Errorf("Describe: %v, expected %s", err, test.line)
		}
	}
	if err := walk.Check(nil, nil); err == nil || err.Error() != "schema is NULL" {
		t.Error(err)
	}
	if err := walk.Check(fake.Schema("n"), nil); err == nil || err.Error() != "array is NULL" {
		t.Error(err)
	}
}

func TestDescribeRefuses(t *testing.T) {
	for line, spoil := range map[string]func(*abi.ArrowSchema, *abi.ArrowDeviceArray){
		"no description for the format '\ufffdx '":          func(s *abi.ArrowSchema, _ *abi.ArrowDeviceArray) { s.Format = fake.Schema("\xffx\n").Format },
		"device unknown(1000)":                              func(_ *abi.ArrowSchema, a *abi.ArrowDeviceArray) { a.DeviceType = 1000 },
		"sync_event is not NULL":                            func(_ *abi.ArrowSchema, a *abi.ArrowDeviceArray) { a.SyncEvent = 1 },
		"/ array.n_buffers is 0, format 'i' has 2":          func(*abi.ArrowSchema, *abi.ArrowDeviceArray) {},
		"/ array.n_buffers is 0, format 'vu' has 3 or more": func(s *abi.ArrowSchema, _ *abi.ArrowDeviceArray) { s.Format = fake.Schema("vu").Format },
		"/ array.length is 1152921504606846976": func(s *abi.ArrowSchema, a *abi.ArrowDeviceArray) {
			s.Format, a.Array.Length = fake.Schema("w:2147483647").Format, 1<<60
		},
		"/ the sizes of the data buffers are NULL": func(s *abi.ArrowSchema, a *abi.ArrowDeviceArray) {
			s.Format, a.Array.NBuffers, a.Array.Buffers = fake.Schema("vz").Format, 4, keep(&[4]uintptr{})
		},
		"/ the size of data buffer 0 is -8": func(s *abi.ArrowSchema, a *abi.ArrowDeviceArray) {
			s.Format, a.Array.NBuffers = fake.Schema("vz").Format, 4
			a.Array.Buffers = keep(&[4]uintptr{3: keep(&[1]int64{-8})})
		},
		"/ array.length is 9223372036854775807": func(_ *abi.ArrowSchema, a *abi.ArrowDeviceArray) {
			a.Array.Length, a.Array.Offset = 1<<63-1, 1<<63-1
		},
		"metadata: the number of pairs is -1":  func(s *abi.ArrowSchema, _ *abi.ArrowDeviceArray) { s.Metadata = keep(&[2]int32{-1}) },
		"metadata: the length of a text is -7": func(s *abi.ArrowSchema, _ *abi.ArrowDeviceArray) { s.Metadata = keep(&[2]int32{1, -7}) },
	} {
		schema, array := fake.Schema("i"), fake.Array()
		spoil(schema, array)
		if _, err := walk.Describe(schema, array); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v, expected %s", err, line)
		}
	}
}

func TestDescribeRefusesFormats(t *testing.T) {
	for _, format := range []string{"", "vx", "i ", "b:", "tsx:", "tss", "w:", "w:-1", "w:99999999999", "d:1", "d:1,2,x"} {
		line := fmt.Sprintf("/ no description for the format '%s'", format)
		if _, err := walk.Describe(fake.Schema(format), fake.Array()); err == nil || err.Error() != line {
			t.Errorf("%v, expected %s", err, line)
		}
	}
}

func TestCheckStreamRefuses(t *testing.T) {
	for line, spoil := range map[string]func(*abi.ArrowDeviceArrayStream){
		"stream is released":            func(s *abi.ArrowDeviceArrayStream) { s.Release = 0 },
		"stream.get_schema is NULL":     func(s *abi.ArrowDeviceArrayStream) { s.GetSchema = 0 },
		"stream.get_next is NULL":       func(s *abi.ArrowDeviceArrayStream) { s.GetNext = 0 },
		"stream.get_last_error is NULL": func(s *abi.ArrowDeviceArrayStream) { s.GetLastError = 0 },
	} {
		stream := fake.Stream()
		if err := walk.CheckStream(stream); err != nil {
			t.Fatal(err)
		}
		spoil(stream)
		if err := walk.CheckStream(stream); err == nil || err.Error() != line {
			t.Errorf("%v, expected %s", err, line)
		}
	}
	if err := walk.CheckStream(nil); err == nil || err.Error() != "stream is NULL" {
		t.Error(err)
	}
}

func TestFit(t *testing.T) {
	const text = "aé矢🏹"
	for size := range len(text) + 2 {
		cut := walk.Fit(text, size)
		if len(cut) > size || !utf8.ValidString(cut) || !strings.HasPrefix(text, cut) || len(cut) < min(size, len(text))-3 {
			t.Errorf("%d bytes of %q are %q", size, text, cut)
		}
	}
}

// give makes child the only child of parent.
func give(parent, child *abi.ArrowSchema) {
	list := &[1]uintptr{uintptr(unsafe.Pointer(child))}
	kept = append(kept, child)
	parent.NChildren, parent.Children = 1, keep(list)
}

// keep returns the address of Go memory that stays alive, and where it is: nothing on the heap moves.
func keep[T any](memory *T) uintptr {
	kept = append(kept, memory)
	return uintptr(unsafe.Pointer(memory))
}

var kept []any
