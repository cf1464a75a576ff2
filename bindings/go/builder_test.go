// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// batch describes a record batch with this number of columns, the last of which has a dictionary.
func batch(columns int) *fletching.ArrayBuilder {
	builder := &fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0}}
	for i := range columns {
		builder.Children = append(builder.Children, fletching.ArrayBuilder{
			Length: 3, NullCount: -1, Offset: 2, Buffers: []uintptr{0, uintptr(0x1000 + i)},
		})
	}
	if columns > 0 {
		builder.Children[columns-1].Dictionary = &fletching.ArrayBuilder{
			Length: 1, Children: []fletching.ArrayBuilder{{}},
		}
	}
	return builder
}

func TestBuildReturnsDescribedArray(t *testing.T) {
	var log log
	array := must(batch(2).BuildOn(abi.DeviceCUDA, 1, 0x2000, &note{&log, "owner"}))
	second := array.Child(1)
	if array.Length() != 3 || array.NumBuffers() != 1 || array.NumChildren() != 2 || array.DeviceID() != 1 ||
		array.DeviceType() != abi.DeviceCUDA || array.SyncEvent() != 0x2000 || !array.Dictionary().IsReleased() ||
		second.NullCount() != -1 || second.Offset() != 2 || second.Buffer(1) != 0x1001 || second.Buffer(2) != 0 ||
		second.Dictionary().Length() != 1 || second.Dictionary().NumChildren() != 1 ||
		!reflect.DeepEqual(array.Child(0).BufferAddresses(), []uintptr{0, 0x1000}) {
		t.Error("the accessors read other values")
	}
	array.Close()
	log.expect(t, "owner")
}

func TestOwnerLivesUntilLastStruct(t *testing.T) {
	for _, order := range permutations(4) {
		var log log
		array := must(batch(3).Build(&note{&log, "owner"}))
		parts := []*fletching.Array{array, must(array.TakeChild(0)), must(array.TakeChild(2)), nil}
		parts[3] = must(parts[2].TakeDictionary())
		for i, part := range order {
			runtime.GC()
			parts[part].Close()
			if i < 3 {
				log.expect(t)
			}
		}
		log.expect(t, "owner")
	}
}

// All memory of a built struct is in the allocation that private_data points to.
func TestBuildAllocatesOnce(t *testing.T) {
	var schema abi.ArrowSchema
	builder := table()
	if err := must(builder.Build()).Export(unsafe.Pointer(&schema)); err != nil {
		t.Fatal(err)
	}
	count := eachAddress(t, reflect.ValueOf(schema), schema.PrivateData)
	// Format, name and private data of 6 schemas, metadata, 2 lists, a dictionary, and 5 listed schemas.
	if expected := 6*3 + 1 + 2 + 1 + 5; count != expected {
		t.Errorf("expected %d addresses in a schema, got %d", expected, count)
	}
	must(fletching.ImportSchema(unsafe.Pointer(&schema))).Close()

	var array abi.ArrowArray
	if err := must(batch(3).Build(nil)).Export(unsafe.Pointer(&array)); err != nil {
		t.Fatal(err)
	}
	eachAddress(t, reflect.ValueOf(array), array.PrivateData)
	must(fletching.ImportArray(unsafe.Pointer(&array))).Close()
}

// eachAddress checks and counts the addresses in a struct and its nested structs.
func eachAddress(t *testing.T, value reflect.Value, block uintptr) (count int) {
	t.Helper()
	inside := func(name string, address uintptr) {
		if address != 0 {
			count++
		}
		if address != 0 && address-block >= peer.SizeOf(block) {
			t.Errorf("%s.%s is not in the allocation", value.Type(), name)
		}
	}
	for i := range value.NumField() {
		if value.Field(i).Type() == reflect.TypeFor[uintptr]() {
			inside(value.Type().Field(i).Name, uintptr(value.Field(i).Uint()))
		}
	}
	below := func(address uintptr) {
		inside("Children[i]", address)
		count += eachAddress(t, reflect.NewAt(value.Type(), abi.Pointer(address)).Elem(), block)
	}
	children := unsafe.Slice((*uintptr)(abi.Pointer(uintptr(value.FieldByName("Children").Uint()))), value.FieldByName("NChildren").Int())
	for _, child := range children {
		below(child)
	}
	if dictionary := uintptr(value.FieldByName("Dictionary").Uint()); dictionary != 0 {
		below(dictionary)
	}
	return count
}

func TestBuildRejectsInvalidArrays(t *testing.T) {
	deep := fletching.ArrayBuilder{}
	for range 256 {
		deep = fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{deep}}
	}
	if must(deep.Children[0].Build(nil)).Close(); true {
		_, err := deep.Build(nil)
		expectError(t, err, syscall.EINVAL, "ArrayBuilder: nested too deep: expected at most 256 levels")
	}
	cyclic := fletching.ArrayBuilder{}
	cyclic.Dictionary = &cyclic
	expectError(t, second(cyclic.Build(nil)), syscall.EINVAL, "nested too deep")
	wide := fletching.ArrayBuilder{Children: make([]fletching.ArrayBuilder, 1<<22)}
	expectError(t, second(wide.Build(nil)), syscall.EINVAL, "too many structs")
	for _, wrong := range []fletching.ArrayBuilder{{Length: -1}, {Offset: -1}, {NullCount: -2}, {NullCount: 1}} {
		var log log
		_, err := (&fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{wrong}}).Build(&note{&log, "owner"})
		expectError(t, err, syscall.EINVAL, "ArrayBuilder: length, offset or null_count out of range")
		log.expect(t)
	}
	_, err := batch(0).BuildOn(abi.DeviceCPU, -1, 8, nil)
	expectError(t, err, syscall.EINVAL, "ArrayBuilder: sync_event not NULL: expected NULL")
	for _, deviceType := range []abi.DeviceType{abi.DeviceExtDev, abi.DeviceCUDA, 9999} {
		must(batch(0).BuildOn(deviceType, 0, 8, nil)).Close()
	}
}

func TestFromValuesPinsSlice(t *testing.T) {
	values := []int32{1, 2, 3}
	array := must(fletching.FromValues(values))
	if array.Length() != 3 || array.Buffer(1) != uintptr(unsafe.Pointer(&values[0])) || array.Buffer(0) != 0 {
		t.Error("the array has other values")
	}
	raw := new(abi.ArrowArray)
	if err := array.Export(unsafe.Pointer(raw)); err != nil {
		t.Fatal(err)
	}
	if err := callbacks.CheckPinned(raw); err != nil {
		t.Error(err)
	}
	array = importArray(t, *raw)
	values = nil
	runtime.GC()
	if seen := unsafe.Slice((*int32)(abi.Pointer(array.Buffer(1))), 3); seen[2] != 3 {
		t.Error("the slice was collected")
	}
	array.Close()
	empty := must(fletching.FromValues([]float64{}))
	if empty.Length() != 0 || empty.NumBuffers() != 2 || empty.Buffer(1) != 0 {
		t.Error("an empty array has values")
	}
	empty.Close()
	inC := peer.New[float32](2)
	must(fletching.FromValues(inC)).Close()
	peer.Free(inC)
}

func TestFormatOf(t *testing.T) {
	if all := fletching.FormatOf[int8]() + fletching.FormatOf[uint8]() + fletching.FormatOf[int16]() +
		fletching.FormatOf[uint16]() + fletching.FormatOf[int32]() + fletching.FormatOf[uint32]() +
		fletching.FormatOf[int64]() + fletching.FormatOf[uint64]() + fletching.FormatOf[float32]() +
		fletching.FormatOf[float64](); all != "cCsSiIlLfg" {
		t.Error(all)
	}
}

func table() fletching.SchemaBuilder {
	return fletching.SchemaBuilder{
		Format: "+s", Metadata: fletching.Metadata{{Key: "a", Value: "1"}, {Key: "a", Value: "\xff\x00"}, {}},
		Children: []fletching.SchemaBuilder{
			{Format: "i", Name: "key", Flags: abi.FlagNullable},
			{Format: "c", Name: "codes", Dictionary: &fletching.SchemaBuilder{Format: "u", Name: "text"}},
			{Format: "+l", Children: []fletching.SchemaBuilder{{Format: "g", Name: "item"}}},
		},
	}
}

func TestSchemaCopiesBuilder(t *testing.T) {
	builder := table()
	schema := must(builder.Build())
	defer schema.Close()
	runtime.GC()
	copied := must(schema.Root().Builder())
	if !reflect.DeepEqual(copied, builder) {
		t.Errorf("expected %+v, got %+v", builder, copied)
	}
	codes := must(schema.TakeChild(1))
	text := must(codes.TakeDictionary())
	if codes.Format() != "c" || text.Name() != "text" || text.NumChildren() != 0 {
		t.Error("a schema that was taken reads other values")
	}
	_, err := schema.Root().Builder()
	expectError(t, err, syscall.EINVAL, "Builder: the struct or a descendant is released or moved out")
	codes.Close()
	text.Close()
}

func TestSchemaCopyRejectsNonUTF8(t *testing.T) {
	for _, text := range []func(*abi.ArrowSchema) uintptr{
		func(raw *abi.ArrowSchema) uintptr { return raw.Format },
		func(raw *abi.ArrowSchema) uintptr { return raw.Name },
	} {
		var raw abi.ArrowSchema
		succeed(t, must((&fletching.SchemaBuilder{Format: "i", Name: "n"}).Build()).Export(unsafe.Pointer(&raw)))
		*(*byte)(abi.Pointer(text(&raw))) = 0xff
		schema := must(fletching.ImportSchema(unsafe.Pointer(&raw)))
		_, err := schema.Root().Builder()
		expectError(t, err, syscall.EINVAL, "Builder: format or name: expected UTF-8")
		schema.Close()
	}
}

// pyarrow and arrow-java reject a NULL name.
func TestSchemaWithoutNameAndMetadata(t *testing.T) {
	var raw abi.ArrowSchema
	succeed(t, must((&fletching.SchemaBuilder{Format: "i", Metadata: fletching.Metadata{}}).Build()).Export(unsafe.Pointer(&raw)))
	if raw.Name == 0 || raw.NameString() != "" || raw.Metadata != 0 || raw.Children != 0 || raw.Dictionary != 0 {
		t.Errorf("%+v", raw)
	}
	callbacks.ReleaseArrowSchema(&raw)
}

func TestSchemaTakeChildRejectsMissingChild(t *testing.T) {
	schema := intSchema()
	defer schema.Close()
	child, err := schema.TakeChild(0)
	expectError(t, err, syscall.EINVAL, "TakeChild: child 0: no such child: expected an index below 0")
	dictionary, err := schema.TakeDictionary()
	expectError(t, err, syscall.EINVAL, "TakeDictionary: NULL: expected a struct")
	if child != nil || dictionary != nil {
		t.Error("a schema with an error")
	}
}

// A schema that lists one child twice on each of 22 levels has 2^23 structs.
func TestSchemaCopyRejectsTooManyStructs(t *testing.T) {
	level := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	lists := peer.New[uintptr](2 * 22)
	defer peer.Free(lists)
	levels := peer.New[abi.ArrowSchema](22)
	defer peer.Free(levels)
	for i := range levels {
		if err := level.Export(unsafe.Pointer(&levels[i])); err != nil {
			t.Fatal(err)
		}
		level = must((&fletching.SchemaBuilder{Format: "+s"}).Build())
		raw := abi.ArrowSchema{}
		if err := level.Export(unsafe.Pointer(&raw)); err != nil {
			t.Fatal(err)
		}
		lists[2*i], lists[2*i+1] = uintptr(unsafe.Pointer(&levels[i])), uintptr(unsafe.Pointer(&levels[i]))
		raw.NChildren, raw.Children = 2, uintptr(unsafe.Pointer(&lists[2*i]))
		level = must(fletching.ImportSchema(unsafe.Pointer(&raw)))
	}
	defer level.Close()
	_, err := level.Root().Builder()
	expectError(t, err, syscall.EINVAL, "Builder: the struct or a descendant is one of too many")
}

func TestSchemaBuilderRejectsInvalidSchemas(t *testing.T) {
	cyclic := fletching.SchemaBuilder{Format: "u"}
	cyclic.Dictionary = &cyclic
	for text, wrong := range map[string]fletching.SchemaBuilder{
		"child 0: format: empty: expected a format string":          {},
		"child 0: format: NUL character":                            {Format: "i\x00"},
		"child 0: format: not UTF-8":                                {Format: "i\xff"},
		"child 0: name: not UTF-8":                                  {Format: "i", Name: "a\xc3"},
		"child 0: name: NUL character: expected text without it":    {Format: "i", Name: "\x00"},
		"dictionary: dictionary: nested too deep: expected at most": cyclic,
	} {
		_, err := (&fletching.SchemaBuilder{Format: "+s", Children: []fletching.SchemaBuilder{wrong}}).Build()
		expectError(t, err, syscall.EINVAL, "SchemaBuilder: ")
		expectError(t, err, syscall.EINVAL, text)
	}
}

func TestMetadata(t *testing.T) {
	pairs := fletching.Metadata{{Key: "k", Value: "v"}, {Key: "", Value: "\x00"}, {Key: "k", Value: "w"}}
	block := must(pairs.Encode())
	if decoded := must(fletching.DecodeMetadata(append(block, "behind"...))); !reflect.DeepEqual(decoded, pairs) {
		t.Errorf("expected %q, got %q", pairs, decoded)
	}
	if value, found := pairs.Get("k"); value != "v" || !found {
		t.Error(value)
	}
	if _, found := pairs.Get("x"); found {
		t.Error("a key that is not there")
	}
	for size := range block {
		_, err := fletching.DecodeMetadata(block[:size])
		expectError(t, err, syscall.EINVAL, "metadata: ")
	}
	long := strings.Repeat("\xff", 4)
	for text, block := range map[string]string{
		"metadata: number of pairs at byte 0: truncated: expected 4 bytes":                                "",
		"metadata: number of pairs at byte 0: negative: expected 0 or more, got -1":                       long,
		"metadata: length of key 0 at byte 4: negative: expected 0 or more, got -1":                       number(1) + long,
		"metadata: length of value 0 at byte 9: too large: expected at most the bytes that follow, got 9": number(1) + number(1) + "k" + number(9),
	} {
		_, err := fletching.DecodeMetadata([]byte(block))
		expectError(t, err, syscall.EINVAL, text)
	}
}

func number(value int32) string {
	return string(unsafe.Slice((*byte)(unsafe.Pointer(&value)), 4))
}
