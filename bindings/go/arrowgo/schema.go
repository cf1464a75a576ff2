// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// ImportSchema returns the schema of record batches and closes its argument.
//
// Errors: EINVAL for a schema that is closed or not a struct, and for fields that arrow-go cannot
// represent, which the error names: unsupported types, and metadata of a dictionary or of the entries,
// keys and run ends of a type.
func ImportSchema(schema *fletching.Schema) (*arrow.Schema, error) {
	return importSchema("ImportSchema", schema)
}

func importSchema(operation string, schema *fletching.Schema) (*arrow.Schema, error) {
	field, err := importField(operation, schema)
	if err != nil {
		return nil, err
	}
	table, ok := field.Type.(*arrow.StructType)
	if !ok {
		return nil, invalid("%s: wrong type: expected a struct, got %v", operation, field.Type)
	}
	return arrow.NewSchema(table.Fields(), &field.Metadata), nil
}

// ImportField is ImportSchema for a schema of any type.
func ImportField(schema *fletching.Schema) (arrow.Field, error) {
	return importField("ImportField", schema)
}

func importField(operation string, schema *fletching.Schema) (arrow.Field, error) {
	if schema == nil {
		return arrow.Field{}, missing(operation, "schema")
	}
	builder, err := schema.Root().Builder()
	schema.Close()
	if err != nil {
		return arrow.Field{}, err
	}
	return guarded(operation, func() (arrow.Field, error) { return fieldOf(&builder, builder.Name) })
}

// fieldOf returns the field of a schema. The path is for messages.
func fieldOf(b *fletching.SchemaBuilder, path string) (field arrow.Field, err error) {
	field = arrow.Field{Name: b.Name, Nullable: b.Flags&abi.FlagNullable != 0, Metadata: metadataOf(b.Metadata)}
	children := make([]arrow.Field, len(b.Children))
	for i := range b.Children {
		below := b.Children[i].Name
		if path != "" {
			below = path + "." + below
		}
		if children[i], err = fieldOf(&b.Children[i], below); err != nil {
			return field, err
		}
	}
	if field.Type, err = typeOf(b, children); err == nil && b.Dictionary != nil {
		field.Type, err = dictionaryOf(b, field.Type, path+".dictionary")
	}
	if err != nil {
		return field, fmt.Errorf("field %q: %w", path, err)
	}
	return field, nil
}

func metadataOf(pairs fletching.Metadata) arrow.Metadata {
	var keys, values []string
	for _, pair := range pairs {
		keys, values = append(keys, pair.Key), append(values, pair.Value)
	}
	return arrow.NewMetadata(keys, values)
}

func dictionaryOf(b *fletching.SchemaBuilder, indices arrow.DataType, path string) (arrow.DataType, error) {
	if !arrow.IsInteger(indices.ID()) {
		return nil, fmt.Errorf("indices of a dictionary: expected an integer, got %v", indices)
	}
	if len(b.Dictionary.Metadata) > 0 {
		return nil, fmt.Errorf("metadata of a dictionary: not supported by arrow-go: expected none, got key %q", b.Dictionary.Metadata[0].Key)
	}
	values, err := fieldOf(b.Dictionary, path)
	return &arrow.DictionaryType{IndexType: indices, ValueType: values.Type, Ordered: b.Flags&abi.FlagDictionaryOrdered != 0}, err
}

// typeOf returns the type of a format. arrow-go parses the formats of types without children.
func typeOf(b *fletching.SchemaBuilder, children []arrow.Field) (arrow.DataType, error) {
	nested, spec, hasSpec := strings.Cut(b.Format, ":")
	expected := map[string]int{"+l": 1, "+L": 1, "+vl": 1, "+vL": 1, "+w": 1, "+m": 1, "+r": 2}
	count, counted := expected[nested]
	if !strings.HasPrefix(nested, "+") {
		counted = true
	}
	if counted && len(children) != count {
		return nil, fmt.Errorf("format %q: expected %d children, got %d", b.Format, count, len(children))
	}
	if takesSpec := nested == "+w" || nested == "+us" || nested == "+ud"; strings.HasPrefix(nested, "+") && hasSpec != takesSpec {
		return nil, unknownFormat(b.Format)
	}
	switch nested {
	case "+l":
		return arrow.ListOfField(children[0]), nil
	case "+L":
		return arrow.LargeListOfField(children[0]), nil
	case "+vl":
		return arrow.ListViewOfField(children[0]), nil
	case "+vL":
		return arrow.LargeListViewOfField(children[0]), nil
	case "+w":
		size, err := strconv.ParseUint(spec, 10, 31)
		if err != nil {
			return nil, unknownFormat(b.Format)
		}
		if size == 0 {
			return nil, fmt.Errorf("format %q: arrow-go has no lists of zero items", b.Format)
		}
		return arrow.FixedSizeListOfField(int32(size), children[0]), nil
	case "+s":
		return arrow.StructOf(children...), nil
	case "+m":
		return mapOf(b, children[0])
	case "+r":
		if children[0].Metadata.Len() > 0 || children[1].Metadata.Len() > 0 {
			return nil, fmt.Errorf("metadata of run ends or values: not supported by arrow-go: expected none")
		}
		ree := arrow.RunEndEncodedOf(children[0].Type, children[1].Type)
		ree.ValueNullable = children[1].Nullable
		return ree, nil
	case "+us", "+ud":
		return unionOf(nested, spec, children)
	}
	if !isLeaf(nested, spec, hasSpec) {
		return nil, unknownFormat(b.Format)
	}
	if nested == "w" { // later versions of arrow-go refuse 0
		width, err := strconv.Atoi(spec)
		return &arrow.FixedSizeBinaryType{ByteWidth: width}, err
	}
	return leafOf(b.Format)
}

func unknownFormat(format string) error {
	return fmt.Errorf("format %q: not a known format", format)
}

// isLeaf rejects malformed formats that arrow-go accepts, replaces by a default, or panics on.
func isLeaf(name, spec string, hasSpec bool) bool {
	switch {
	case strings.HasPrefix(name, "+"):
		return false
	case name == "w":
		_, err := strconv.ParseUint(spec, 10, 31)
		return err == nil
	case name == "d":
		return isDecimal(strings.Split(spec, ","))
	case strings.HasPrefix(name, "ts"):
		return hasSpec && !strings.HasPrefix(spec, "'") && !strings.HasPrefix(spec, `"`)
	}
	return true
}

// isDecimal checks the precision, the scale and, unless it is omitted, the width in bits.
func isDecimal(parts []string) bool {
	if len(parts) == 2 {
		parts = append(parts, "128")
	}
	most, known := map[string]uint64{"32": 9, "64": 18, "128": 38, "256": 76}[parts[len(parts)-1]]
	if len(parts) != 3 || !known {
		return false
	}
	precision, err := strconv.ParseUint(parts[0], 10, 31)
	_, badScale := strconv.ParseInt(parts[1], 10, 32)
	return err == nil && badScale == nil && precision >= 1 && precision <= most
}

func mapOf(b *fletching.SchemaBuilder, entries arrow.Field) (arrow.DataType, error) {
	pair, ok := entries.Type.(*arrow.StructType)
	if !ok || pair.NumFields() != 2 {
		return nil, fmt.Errorf("entries of a map: expected a struct of two children, got %v", entries.Type)
	}
	key, item := pair.Field(0), pair.Field(1)
	if entries.Metadata.Len() > 0 || key.Metadata.Len() > 0 {
		return nil, fmt.Errorf("metadata of entries or keys: not supported by arrow-go: expected none")
	}
	result := arrow.MapOfWithMetadata(key.Type, key.Metadata, item.Type, item.Metadata)
	result.SetItemNullable(item.Nullable)
	result.KeysSorted = b.Flags&abi.FlagMapKeysSorted != 0
	return result, nil
}

func unionOf(mode, spec string, children []arrow.Field) (arrow.DataType, error) {
	var codes []arrow.UnionTypeCode
	for code := range strings.SplitSeq(spec, ",") {
		if code == "" && len(children) == 0 {
			break
		}
		value, err := strconv.ParseUint(code, 10, 7)
		if err != nil {
			return nil, err
		}
		if slices.Contains(codes, arrow.UnionTypeCode(value)) {
			return nil, fmt.Errorf("type ids of a union: expected each once, got %d twice", value)
		}
		codes = append(codes, arrow.UnionTypeCode(value))
	}
	if len(codes) != len(children) {
		return nil, fmt.Errorf("type ids of a union: expected %d, got %d", len(children), len(codes))
	}
	if mode == "+us" {
		return arrow.SparseUnionOf(children, codes), nil
	}
	return arrow.DenseUnionOf(children, codes), nil
}

func leafOf(format string) (arrow.DataType, error) {
	schema, err := (&fletching.SchemaBuilder{Format: format}).Build()
	if err != nil {
		return nil, err
	}
	raw := new(abi.ArrowSchema)
	if err := schema.Export(unsafe.Pointer(raw)); err != nil {
		return nil, err
	}
	field, err := cdata.ImportCArrowField((*cdata.CArrowSchema)(unsafe.Pointer(raw)))
	if err != nil {
		return nil, fmt.Errorf("format %q: %w", format, err)
	}
	return field.Type, nil
}

// --- Export -------------------------------------------------------------------------------------

// ExportSchema returns the schema as a struct schema.
//
// Errors: EINVAL, with the path of the field, for a name or a time zone that contains U+0000 or is not
// UTF-8, and for a type that arrow-go does not export.
func ExportSchema(schema *arrow.Schema) (*fletching.Schema, error) {
	if schema == nil {
		return nil, missing("ExportSchema", "schema")
	}
	return exportSchema("ExportSchema", func() (*fletching.SchemaBuilder, error) { return tableOf(schema) })
}

// ExportField returns the schema of a column. Errors: as ExportSchema.
func ExportField(field arrow.Field) (*fletching.Schema, error) {
	return exportSchema("ExportField", func() (*fletching.SchemaBuilder, error) { return schemaOf(field) })
}

func exportSchema(operation string, describe func() (*fletching.SchemaBuilder, error)) (*fletching.Schema, error) {
	builder, err := guarded(operation, describe)
	if err != nil {
		return nil, err
	}
	return builder.Build()
}

func tableOf(schema *arrow.Schema) (*fletching.SchemaBuilder, error) {
	children, err := schemasOf(schema.Fields())
	return &fletching.SchemaBuilder{Format: "+s", Metadata: pairsOf(schema.Metadata()), Children: children}, err
}

func schemasOf(fields []arrow.Field) ([]fletching.SchemaBuilder, error) {
	var result []fletching.SchemaBuilder
	for _, field := range fields {
		builder, err := schemaOf(field)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", field.Name, err)
		}
		result = append(result, *builder)
	}
	return result, nil
}

func schemaOf(field arrow.Field) (*fletching.SchemaBuilder, error) {
	if field.Type == nil {
		return nil, missing("field", "type")
	}
	result := &fletching.SchemaBuilder{Name: field.Name, Metadata: pairsOf(field.Metadata)}
	if field.Nullable {
		result.Flags |= abi.FlagNullable
	}
	dataType := field.Type
	for { // C sees the outermost extension type
		extension, ok := dataType.(arrow.ExtensionType)
		if !ok {
			break
		}
		for key, value := range map[string]string{
			ipc.ExtensionTypeKeyName: extension.ExtensionName(), ipc.ExtensionMetadataKeyName: extension.Serialize(),
		} {
			if _, found := result.Metadata.Get(key); !found {
				result.Metadata = append(result.Metadata, fletching.KeyValue{Key: key, Value: value})
			}
		}
		dataType = extension.StorageType()
	}
	return result, describe(result, dataType)
}

// describe sets the format, with the flags and children of the type.
func describe(result *fletching.SchemaBuilder, dataType arrow.DataType) (err error) {
	switch dataType := dataType.(type) {
	case *arrow.DictionaryType:
		if dataType.Ordered {
			result.Flags |= abi.FlagDictionaryOrdered
		}
		if result.Dictionary, err = schemaOf(arrow.Field{Type: dataType.ValueType}); err != nil {
			return err
		}
		return describe(result, dataType.IndexType)
	case arrow.NestedType:
		if sorted, ok := dataType.(*arrow.MapType); ok && sorted.KeysSorted {
			result.Flags |= abi.FlagMapKeysSorted
		}
		if result.Children, err = schemasOf(dataType.Fields()); err != nil {
			return err
		}
	case *arrow.TimestampType:
		if strings.Contains(dataType.TimeZone, "\x00") {
			return fmt.Errorf("time zone %q: NUL character: expected text without it", dataType.TimeZone)
		}
	}
	result.Format, err = formatOf(dataType)
	return err
}

func pairsOf(metadata arrow.Metadata) fletching.Metadata {
	var pairs fletching.Metadata
	for i, key := range metadata.Keys() {
		pairs = append(pairs, fletching.KeyValue{Key: key, Value: metadata.Values()[i]})
	}
	return pairs
}

// formats maps types without parameters to their format strings.
var formats = map[arrow.Type]string{
	arrow.NULL: "n", arrow.BOOL: "b", arrow.INT8: "c", arrow.UINT8: "C", arrow.INT16: "s", arrow.UINT16: "S",
	arrow.INT32: "i", arrow.UINT32: "I", arrow.INT64: "l", arrow.UINT64: "L",
	arrow.FLOAT16: "e", arrow.FLOAT32: "f", arrow.FLOAT64: "g",
	arrow.BINARY: "z", arrow.LARGE_BINARY: "Z", arrow.BINARY_VIEW: "vz",
	arrow.STRING: "u", arrow.LARGE_STRING: "U", arrow.STRING_VIEW: "vu",
	arrow.DATE32: "tdD", arrow.DATE64: "tdm",
	arrow.INTERVAL_MONTHS: "tiM", arrow.INTERVAL_DAY_TIME: "tiD", arrow.INTERVAL_MONTH_DAY_NANO: "tin",
	arrow.LIST: "+l", arrow.LARGE_LIST: "+L", arrow.LIST_VIEW: "+vl", arrow.LARGE_LIST_VIEW: "+vL",
	arrow.STRUCT: "+s", arrow.MAP: "+m", arrow.RUN_END_ENCODED: "+r",
}

// units maps time units to their letter in a format string.
var units = map[arrow.TimeUnit]string{arrow.Second: "s", arrow.Millisecond: "m", arrow.Microsecond: "u", arrow.Nanosecond: "n"}

func formatOf(dataType arrow.DataType) (string, error) {
	if format, found := formats[dataType.ID()]; found {
		return format, nil
	}
	switch dataType := dataType.(type) {
	case *arrow.FixedSizeBinaryType:
		return "w:" + strconv.Itoa(dataType.ByteWidth), nil
	case *arrow.FixedSizeListType:
		return "+w:" + strconv.Itoa(int(dataType.Len())), nil
	case arrow.DecimalType:
		format := fmt.Sprintf("d:%d,%d", dataType.GetPrecision(), dataType.GetScale())
		if bits := dataType.BitWidth(); bits != 128 {
			format += "," + strconv.Itoa(bits)
		}
		return format, nil
	case *arrow.TimestampType:
		return "ts" + units[dataType.Unit] + ":" + dataType.TimeZone, nil
	case *arrow.DurationType:
		return "tD" + units[dataType.Unit], nil
	case *arrow.Time32Type:
		if dataType.Unit == arrow.Second || dataType.Unit == arrow.Millisecond {
			return "tt" + units[dataType.Unit], nil
		}
	case *arrow.Time64Type:
		if dataType.Unit == arrow.Microsecond || dataType.Unit == arrow.Nanosecond {
			return "tt" + units[dataType.Unit], nil
		}
	case arrow.UnionType:
		var codes []string
		for _, code := range dataType.TypeCodes() {
			codes = append(codes, strconv.Itoa(int(code)))
		}
		mode := map[arrow.UnionMode]string{arrow.SparseMode: "+us:", arrow.DenseMode: "+ud:"}
		return mode[dataType.Mode()] + strings.Join(codes, ","), nil
	}
	return "", fmt.Errorf("type %v: not exported", dataType)
}
