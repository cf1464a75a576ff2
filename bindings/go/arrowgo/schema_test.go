// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

func TestImportFieldKeepsFlags(t *testing.T) {
	entries := func(key, item int64) []fletching.SchemaBuilder {
		return []fletching.SchemaBuilder{{Format: "+s", Name: "entries", Children: []fletching.SchemaBuilder{
			{Format: "u", Name: "key", Flags: key}, {Format: "i", Name: "value", Flags: item}}}}
	}
	for name, source := range map[string]fletching.SchemaBuilder{
		"ordered":      {Format: "i", Flags: abi.FlagNullable | abi.FlagDictionaryOrdered, Dictionary: &fletching.SchemaBuilder{Format: "u"}},
		"not ordered":  {Format: "i", Flags: abi.FlagNullable, Dictionary: &fletching.SchemaBuilder{Format: "u"}},
		"sorted":       {Format: "+m", Flags: abi.FlagMapKeysSorted, Children: entries(0, 0)},
		"null items":   {Format: "+m", Children: entries(0, abi.FlagNullable)},
		"list of both": {Format: "+l", Children: []fletching.SchemaBuilder{{Format: "s", Name: "item", Flags: 3, Dictionary: &fletching.SchemaBuilder{Format: "u"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			field := must(arrowgo.ImportField(must(source.Build())))
			back := must(arrowgo.ExportField(field))
			defer back.Close()
			expectFlags(t, source, back.Root())
		})
	}
}

func expectFlags(t *testing.T, expected fletching.SchemaBuilder, found fletching.SchemaView) {
	t.Helper()
	if found.Flags() != expected.Flags || found.Format() != expected.Format {
		t.Errorf("%s: expected flags %d, got %d in %s", expected.Format, expected.Flags, found.Flags(), found.Format())
	}
	for i := range expected.Children {
		expectFlags(t, expected.Children[i], found.Child(i))
	}
}

func TestImportFieldRejectsUnsupportedSchemas(t *testing.T) {
	metadata := fletching.Metadata{{Key: "k", Value: "v"}}
	pair := func(entries, key fletching.Metadata) []fletching.SchemaBuilder {
		return []fletching.SchemaBuilder{{Format: "+s", Metadata: entries, Children: []fletching.SchemaBuilder{
			{Format: "u", Metadata: key}, {Format: "i"}}}}
	}
	for message, column := range map[string]fletching.SchemaBuilder{
		`field "a": metadata of a dictionary`:      {Format: "i", Dictionary: &fletching.SchemaBuilder{Format: "u", Metadata: metadata}},
		`field "a": indices of a dictionary`:       {Format: "f", Dictionary: &fletching.SchemaBuilder{Format: "u"}},
		`field "a": metadata of run ends`:          {Format: "+r", Children: []fletching.SchemaBuilder{{Format: "i", Metadata: metadata}, {Format: "u"}}},
		`field "a": metadata of entries`:           {Format: "+m", Children: pair(metadata, nil)},
		`field "a": metadata of entries or keys`:   {Format: "+m", Children: pair(nil, metadata)},
		`field "a": entries of a map`:              {Format: "+m", Children: []fletching.SchemaBuilder{{Format: "i"}}},
		`field "a": format "+l": expected 1 child`: {Format: "+l"},
		`field "a": format "i": expected 0 child`:  {Format: "i", Children: []fletching.SchemaBuilder{{Format: "i"}}},
		`field "a": format "+x"`:                   {Format: "+x"},
		`field "a": format "+s:1"`:                 {Format: "+s:1"},
		`field "a": type ids of a union`:           {Format: "+us:0,1", Children: []fletching.SchemaBuilder{{Format: "i"}}},
		`"x": invalid syntax`:                      {Format: "+us:x", Children: []fletching.SchemaBuilder{{Format: "i"}}},
		`"128": value out of range`:                {Format: "+us:128", Children: []fletching.SchemaBuilder{{Format: "i"}}},
		`union: expected 0, got 1`:                 {Format: "+us:1"},
		`field "a.b": format "?"`:                  {Format: "+s", Children: []fletching.SchemaBuilder{{Format: "?", Name: "b"}}},
	} {
		table := fletching.SchemaBuilder{Format: "+s"}
		column.Name = "a"
		table.Children = []fletching.SchemaBuilder{column}
		_, err := arrowgo.ImportSchema(must(table.Build()))
		if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), message) {
			t.Errorf("expected EINVAL with %q, got %v", message, err)
		}
	}
}

func TestExportFieldWritesTimeUnit(t *testing.T) {
	for format, dataType := range map[string]arrow.DataType{
		"tts": arrow.FixedWidthTypes.Time32s, "ttm": arrow.FixedWidthTypes.Time32ms,
		"ttu": arrow.FixedWidthTypes.Time64us, "ttn": arrow.FixedWidthTypes.Time64ns,
	} {
		schema, err := arrowgo.ExportField(arrow.Field{Name: "a", Type: dataType})
		if err != nil || schema.Format() != format {
			t.Errorf("%v: expected %q, got %v, %v", dataType, format, schema, err)
		}
		schema.Close()
	}
}

func TestExportSchemaRejectsInvalidFields(t *testing.T) {
	for message, field := range map[string]arrow.Field{
		"child 0: name":               {Name: "a\x00b", Type: arrow.Null},
		"child 0: child 0: name":      {Name: "a", Type: arrow.StructOf(arrow.Field{Name: "b\x00", Type: arrow.Null})},
		`field "a": time zone`:        {Name: "a", Type: &arrow.TimestampType{TimeZone: "UTC\x00"}},
		"child 0: name: not UTF-8":    {Name: "\xff", Type: arrow.Null},
		`field "a": type time32[ns]`:  {Name: "a", Type: &arrow.Time32Type{Unit: arrow.Nanosecond}},
		`field "a": field "b": type `: {Name: "a", Type: arrow.StructOf(arrow.Field{Name: "b", Type: &arrow.Time64Type{}})},
	} {
		_, err := arrowgo.ExportSchema(arrow.NewSchema([]arrow.Field{field}, nil))
		if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), message) {
			t.Errorf("expected EINVAL with %q, got %v", message, err)
		}
	}
}

// Metadata may contain any bytes.
func TestSchemaKeepsNonUTF8Metadata(t *testing.T) {
	metadata := arrow.NewMetadata([]string{"\xff", "k\x00"}, []string{"\xfe\x00v", ""})
	field := arrow.Field{Name: "a", Type: arrow.MapOfWithMetadata(arrow.BinaryTypes.String, arrow.Metadata{}, arrow.Null, metadata), Metadata: metadata}
	if back := must(arrowgo.ImportField(must(arrowgo.ExportField(field)))); !back.Equal(field) || !back.Metadata.Equal(metadata) {
		t.Errorf("expected %v, got %v", field, back)
	}
}
