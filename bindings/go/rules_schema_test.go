// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"reflect"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// expectRefused builds a tree with the field as its child 1, child 0.
func expectRefused(t *testing.T, field fletching.SchemaBuilder, text string) {
	t.Helper()
	tree := schemaTree()
	tree.Children[1].Children[0] = field
	expectError(t, second(tree.Build()), syscall.EINVAL, "schema builder: child 1: child 0: "+text)
}

// ends reports whether the text is followed by its NUL.
func ends(address uintptr, text string) bool {
	return *(*byte)(unsafe.Add(abi.Pointer(address), len(text))) == 0
}

func TestRuleSchemaFormatSet(t *testing.T) {
	expectRefused(t, fletching.SchemaBuilder{}, "format: empty: expected a format string")
	expectRefused(t, fletching.SchemaBuilder{Format: "c", Dictionary: &fletching.SchemaBuilder{}}, "dictionary: format: empty")
	eachSchema(bits[abi.ArrowSchema](t, must(schemaTree().Build())), func(raw *abi.ArrowSchema) {
		if raw.Format == 0 || raw.FormatString() == "" {
			t.Errorf("%+v", raw)
		}
	})
}

func TestRuleSchemaFormatUtf8(t *testing.T) {
	expectRefused(t, fletching.SchemaBuilder{Format: "i\x00"}, "format: NUL character: expected text without it")
	expectRefused(t, fletching.SchemaBuilder{Format: "i\xff"}, "format: not UTF-8")
	raw := bits[abi.ArrowSchema](t, must((&fletching.SchemaBuilder{Format: "tsu:é123"}).Build()))
	if raw.FormatString() != "tsu:é123" || !ends(raw.Format, "tsu:é123") {
		t.Errorf("%q", raw.FormatString())
	}
}

func TestRuleSchemaNameUtf8(t *testing.T) {
	expectRefused(t, fletching.SchemaBuilder{Format: "i", Name: "a\x00b"}, "name: NUL character: expected text without it")
	expectRefused(t, fletching.SchemaBuilder{Format: "i", Name: "a\xc3"}, "name: not UTF-8")
	raw := bits[abi.ArrowSchema](t, must((&fletching.SchemaBuilder{Format: "i", Name: "é567890"}).Build()))
	if raw.NameString() != "é567890" || !ends(raw.Name, "é567890") {
		t.Errorf("%q", raw.NameString())
	}
}

func TestRuleSchemaNameNullAccepted(t *testing.T) {
	for _, name := range []uintptr{0, uintptr(unsafe.Pointer(new(byte)))} {
		raw := abi.ArrowSchema{Name: name, Release: callbacks.ArrowSchemaReleaseStub()}
		raw.PrivateData = callbacks.NewHandle(schemaRelease(func(*abi.ArrowSchema) {}))
		schema := must(fletching.ImportSchema(unsafe.Pointer(&raw)))
		if schema.Name() != "" || schema.Root().IsReleased() {
			t.Errorf("%q", schema.Name())
		}
		schema.Close()
	}
}

// schemaRelease is a foreign release callback.
type schemaRelease func(*abi.ArrowSchema)

func (r schemaRelease) Release(self *abi.ArrowSchema) {
	r(self)
	callbacks.DeleteHandle(self.PrivateData)
}

func TestRuleSchemaMetadataNullWhenAbsent(t *testing.T) {
	for _, metadata := range []fletching.Metadata{nil, {}} {
		raw := bits[abi.ArrowSchema](t, must((&fletching.SchemaBuilder{Format: "i", Metadata: metadata}).Build()))
		if raw.Metadata != 0 {
			t.Errorf("%+v", raw)
		}
	}
}

// pyarrow and arrow-java refuse NULL.
func TestSchemaBuilderWritesEmptyNames(t *testing.T) {
	eachSchema(bits[abi.ArrowSchema](t, must(schemaTree().Build())), func(raw *abi.ArrowSchema) {
		if raw.Name == 0 {
			t.Errorf("%q: name is NULL", raw.FormatString())
		}
	})
}

func TestRuleSchemaFlagsZeroWhenAbsent(t *testing.T) {
	eachSchema(bits[abi.ArrowSchema](t, must(schemaTree().Build())), func(raw *abi.ArrowSchema) {
		if raw.Flags != 0 {
			t.Error(raw.Flags)
		}
	})
}

func TestRuleSchemaFlagsPropagated(t *testing.T) {
	const unknown = 1 << 40
	tree := schemaTree()
	tree.Flags, tree.Children[0].Flags = unknown, abi.FlagNullable|unknown
	copied := must(must(tree.Build()).Root().Builder())
	shared := must(must(copied.Build()).Share())
	defer shared.Close()
	all, column := must(shared.View()), must(shared.Column(0))
	defer all.Close()
	defer column.Close()
	if all.Flags() != unknown || column.Flags() != abi.FlagNullable|unknown {
		t.Error(all.Flags(), column.Flags())
	}
}

func TestRuleSchemaNChildrenSet(t *testing.T) {
	raw := bits[abi.ArrowSchema](t, must(schemaTree().Build()))
	if raw.NChildren != 2 || raw.Child(0).NChildren != 0 || raw.Child(1).NChildren != 1 {
		t.Errorf("%+v", raw)
	}
}

func TestRuleSchemaChildrenCount(t *testing.T) {
	eachSchema(bits[abi.ArrowSchema](t, must(schemaTree().Build())), func(raw *abi.ArrowSchema) {
		for _, child := range raw.ChildAddresses() {
			if child == 0 {
				t.Errorf("%+v", raw)
			}
		}
	})
}

func TestRuleSchemaChildrenNullOnlyWhenNone(t *testing.T) {
	eachSchema(bits[abi.ArrowSchema](t, must(schemaTree().Build())), func(raw *abi.ArrowSchema) {
		if (raw.Children == 0) != (raw.NChildren == 0) {
			t.Errorf("%+v", raw)
		}
	})
}

func TestRuleSchemaDictionaryNullOtherwise(t *testing.T) {
	eachSchema(bits[abi.ArrowSchema](t, must(schemaTree().Build())), func(raw *abi.ArrowSchema) {
		if (raw.Dictionary != 0) != (raw.FormatString() == "c") {
			t.Errorf("%+v", raw)
		}
	})
}

func TestRuleSchemaReleaseSet(t *testing.T) {
	structs := 0
	eachSchema(bits[abi.ArrowSchema](t, must(schemaTree().Build())), func(raw *abi.ArrowSchema) {
		structs++
		if raw.Release == 0 {
			t.Errorf("%+v", raw)
		}
	})
	if structs != 5 {
		t.Error(structs)
	}
}

func TestRuleSchemaPrivateDataUntouched(t *testing.T) {
	found := uintptr(0)
	format := peer.New[byte](2)
	defer peer.Free(format)
	format[0] = 'i'
	handle := callbacks.NewHandle(schemaRelease(func(self *abi.ArrowSchema) { found = self.PrivateData }))
	raw := abi.ArrowSchema{
		Format: uintptr(unsafe.Pointer(&format[0])), Release: callbacks.ArrowSchemaReleaseStub(), PrivateData: handle,
	}
	schema := must(fletching.ImportSchema(unsafe.Pointer(&raw)))
	if err := schema.Attach(1); err != nil {
		t.Fatal(err)
	}
	shared := must(schema.Share())
	view := must(shared.View())
	shared.Close()
	if view.Format() != "i" || found != 0 {
		t.Error(view.Format(), found)
	}
	if view.Close(); found != handle {
		t.Errorf("expected %d, got %d", handle, found)
	}
}

// --- Metadata -----------------------------------------------------------------------------------

func TestRuleMetadataEncoding(t *testing.T) {
	for expected, text := range map[string]string{
		"number of pairs at byte 0: negative: expected 0 or more, got -1":            number(-1),
		"length of key 0 at byte 4: negative: expected 0 or more, got -5":            number(1) + number(-5),
		"length of value 0 at byte 9: negative: expected 0 or more, got -2147483648": number(1) + number(1) + "k" + number(-1<<31),
	} {
		block := []byte(text)
		_, err := fletching.DecodeMetadata(block)
		expectError(t, err, syscall.EINVAL, "metadata: "+expected)
		raw := abi.ArrowSchema{Metadata: uintptr(unsafe.Pointer(&block[0])), Release: callbacks.ArrowSchemaReleaseStub()}
		raw.PrivateData = callbacks.NewHandle(schemaRelease(func(*abi.ArrowSchema) {}))
		schema := must(fletching.ImportSchema(unsafe.Pointer(&raw)))
		expectError(t, second(schema.Metadata()), syscall.EINVAL, "metadata: "+expected)
		schema.Close()
	}
	pairs := fletching.Metadata{{Key: "k", Value: ""}, {Key: "", Value: "\xff"}}
	expected := number(2) + number(1) + "k" + number(0) + number(0) + number(1) + "\xff"
	raw := bits[abi.ArrowSchema](t, must((&fletching.SchemaBuilder{Format: "i", Metadata: pairs}).Build()))
	got := unsafe.String((*byte)(abi.Pointer(raw.Metadata)), len(expected))
	if got != expected {
		t.Errorf("expected %x, got %x", expected, got)
	}
}

func TestRuleMetadataNativeEndian(t *testing.T) {
	block := must(fletching.Metadata{{Key: "key", Value: ""}}.Encode())
	if got := *(*int32)(unsafe.Pointer(&block[4])); got != 3 {
		t.Error(got)
	}
}

func TestRuleMetadataNotNulTerminated(t *testing.T) {
	pairs := fletching.Metadata{{Key: "a\x00b", Value: "v"}, {Key: "k", Value: "a\x00b"}}
	if read := must(fletching.DecodeMetadata(must(pairs.Encode()))); !reflect.DeepEqual(read, pairs) {
		t.Errorf("%q", read)
	}
	schema := must((&fletching.SchemaBuilder{Format: "i", Metadata: pairs}).Build())
	defer schema.Close()
	if read := must(schema.Metadata()); !reflect.DeepEqual(read, pairs) {
		t.Errorf("%q", read)
	}
}
