package dump_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/roundtrip/dump"
)

// structs returns a struct with a child and a dictionary, to be released.
func structs(t *testing.T) (*abi.ArrowSchema, *abi.ArrowDeviceArray) {
	t.Helper()
	schemas := fletching.SchemaBuilder{
		Format: "+s", Name: "a\"%\né", Flags: abi.FlagNullable,
		Metadata:   fletching.Metadata{{Key: "k", Value: "\x00v"}},
		Children:   []fletching.SchemaBuilder{{Format: "c"}},
		Dictionary: &fletching.SchemaBuilder{Format: "u"},
	}
	arrays := fletching.ArrayBuilder{
		Length: 3, NullCount: -1, Offset: 1, Buffers: []uintptr{0, 0x7f00},
		Children: []fletching.ArrayBuilder{{}}, Dictionary: &fletching.ArrayBuilder{},
	}
	schema, err := schemas.Build()
	if err != nil {
		t.Fatal(err)
	}
	array, err := arrays.BuildOn(abi.DeviceExtDev, 7, 0xabc, nil)
	if err != nil {
		t.Fatal(err)
	}
	rawSchema, rawArray := new(abi.ArrowSchema), new(abi.ArrowDeviceArray)
	if schema.Export(unsafe.Pointer(rawSchema)) != nil || array.Export(unsafe.Pointer(rawArray)) != nil {
		t.Fatal("not exported")
	}
	t.Cleanup(func() {
		callbacks.ReleaseArrowSchema(rawSchema)
		callbacks.ReleaseArrowArray(&rawArray.Array)
	})
	return rawSchema, rawArray
}

func TestEveryFieldHasALine(t *testing.T) {
	schema, array := structs(t)
	before, beforeArray := *schema, *array
	text, err := dump.Of(schema, array)
	if err != nil {
		t.Fatal(err)
	}
	if *schema != before || *array != beforeArray {
		t.Error("the structs are not as they were")
	}
	var lines []string
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if !strings.Contains(line, "private_data=0x") {
			lines = append(lines, line)
		}
	}
	expected := `schema.format="+s"
schema.name="a%22%25%0a%c3%a9"
schema.metadata="` + strings.NewReplacer(" ", "").Replace(metadata()) + `"
schema.flags=2
schema.n_children=1
schema.children[0].format="c"
schema.children[0].name=""
schema.children[0].metadata=NULL
schema.children[0].flags=0
schema.children[0].n_children=0
schema.dictionary.format="u"
schema.dictionary.name=""
schema.dictionary.metadata=NULL
schema.dictionary.flags=0
schema.dictionary.n_children=0
array.length=3
array.null_count=-1
array.offset=1
array.n_buffers=2
array.n_children=1
array.buffers[0]=0x0
array.buffers[1]=0x7f00
array.children[0].length=0
array.children[0].null_count=0
array.children[0].offset=0
array.children[0].n_buffers=0
array.children[0].n_children=0
array.dictionary.length=0
array.dictionary.null_count=0
array.dictionary.offset=0
array.dictionary.n_buffers=0
array.dictionary.n_children=0
device_id=7
device_type=12
sync_event=0xabc
reserved[0]=0
reserved[1]=0
reserved[2]=0`
	if got := strings.Join(lines, "\n"); got != expected {
		t.Errorf("expected:\n%s\ngot:\n%s", expected, got)
	}
	if count := strings.Count(text, "private_data=0x"); count != 6 {
		t.Errorf("expected private_data of 6 structs, got %d", count)
	}
}

// metadata is the block of the pair k, \0v in this machine's byte order.
func metadata() string {
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) == 1 {
		return "%01%00%00%00 %01%00%00%00 k %02%00%00%00 %00v"
	}
	return "%00%00%00%01 %00%00%00%01 k %00%00%00%02 %00v"
}

// kept are what structs refer to by numbers.
var kept []any

func keep[T any](value *T) uintptr {
	kept = append(kept, value)
	return uintptr(unsafe.Pointer(value))
}

// cycle is a list of a struct that lists itself.
func cycle() *uintptr {
	list, node := new(uintptr), &abi.ArrowArray{NChildren: 1, Release: 1}
	*list, node.Children = keep(node), keep(list)
	return list
}

func TestWhatCannotBeReadIsRefusedAndStays(t *testing.T) {
	for expected, spoil := range map[string]func(*abi.ArrowSchema, *abi.ArrowArray){
		"import: schema is released":                   func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.Release = 0 },
		"import: device array is released":             func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.Release = 0 },
		"schema.format: NULL":                          func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.Format = 0 },
		"schema.n_children: expected 0 or more":        func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.NChildren = -1 },
		"array.n_children: expected 0 or more":         func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.NChildren = 1 << 40 },
		"got 1, of which 0":                            func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.Children = 0 },
		"schema.children[0].: NULL or released":        func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.Child(0).Release = 0 },
		"array.children[0].: NULL or released":         func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.Children = keep(new(uintptr)) },
		"schema.dictionary.: NULL or released":         func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.DictionaryStruct().Release = 0 },
		"array.dictionary.: NULL or released":          func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.DictionaryStruct().Release = 0 },
		"schema.children[0].format: NULL":              func(s *abi.ArrowSchema, _ *abi.ArrowArray) { s.Child(0).Format = 0 },
		"number of pairs at byte 0: negative":          func(s *abi.ArrowSchema, _ *abi.ArrowArray) { *(*int32)(abi.Pointer(s.Metadata)) = -1 },
		"nested too deep: expected at most 256 levels": func(_ *abi.ArrowSchema, a *abi.ArrowArray) { a.Children = keep(cycle()) },
	} {
		t.Run(expected, func(t *testing.T) {
			schema, array := structs(t)
			spoiled, spoiledArray := *schema, *array
			spoil(&spoiled, &spoiledArray.Array)
			before, beforeArray := spoiled, spoiledArray
			text, err := dump.Of(&spoiled, &spoiledArray)
			if err == nil || !strings.Contains(err.Error(), expected) || text != "" {
				t.Errorf("expected %q, got %v", expected, err)
			}
			if spoiled != before || spoiledArray != beforeArray {
				t.Error("the structs are not as they were")
			}
		})
	}
}
