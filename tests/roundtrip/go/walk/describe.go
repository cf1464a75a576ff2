package walk

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// So many elements have a size in bits that does not overflow.
const maxElements = math.MaxInt64 / 128

// What the buffers behind the validity bitmap hold, by format.
type layout struct {
	valueBits   int64 // 32 for "i"; 0: no buffer of values
	offsetBytes int64 // 4 for "u"; 0: no buffer of offsets
	hasData     bool
}

var layouts = map[string]layout{
	"b": {valueBits: 1},
	"c": {valueBits: 8}, "C": {valueBits: 8},
	"s": {valueBits: 16}, "S": {valueBits: 16}, "e": {valueBits: 16},
	"i": {valueBits: 32}, "I": {valueBits: 32}, "f": {valueBits: 32},
	"l": {valueBits: 64}, "L": {valueBits: 64}, "g": {valueBits: 64},
	"u": {offsetBytes: 4, hasData: true}, "z": {offsetBytes: 4, hasData: true},
	"U": {offsetBytes: 8, hasData: true}, "Z": {offsetBytes: 8, hasData: true},
	"+l": {offsetBytes: 4}, "+m": {offsetBytes: 4}, "+L": {offsetBytes: 8},
	"+s": {},
}

// Describe writes an array in host memory as the reference producer does. It calls Check first.
func Describe(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) (string, error) {
	if err := Check(schema, &array.Array); err != nil {
		return "", err
	}
	if array.DeviceType != abi.DeviceCPU {
		return "", Errorf(syscall.ENOTSUP, "buffers on device %v cannot be read here", array.DeviceType)
	}
	if array.SyncEvent != 0 {
		return "", Errorf(syscall.EINVAL, "sync_event is not NULL, and host memory has no event")
	}
	var text strings.Builder
	err := describe(&text, root, schema, &array.Array)
	return text.String(), err
}

func describe(text *strings.Builder, p place, schema *abi.ArrowSchema, array *abi.ArrowArray) error {
	metadata, err := metadataText(schema.Metadata)
	if err != nil {
		return err
	}
	fmt.Fprintf(text, "%v format=%s name=%s flags=%d metadata=%s length=%d null_count=%d offset=%d\n",
		p, Text(schema.Format), Text(schema.Name), schema.Flags, metadata, array.Length, array.NullCount, array.Offset)
	buffers := addresses(array.Buffers, array.NBuffers)
	sizes, err := bufferSizes(p, Text(schema.Format), array, buffers)
	if err != nil {
		return err
	}
	for i, size := range sizes {
		fmt.Fprintf(text, "%v buffer %d %s\n", p, i, bufferText(buffers[i], size))
	}
	schemas := SchemaChildren(schema)
	for i, child := range ArrayChildren(array) {
		if err := describe(text, p.child(i), schemas[i], child); err != nil {
			return err
		}
	}
	if array.Dictionary != 0 {
		dictionary := (*abi.ArrowSchema)(abi.Pointer(schema.Dictionary))
		return describe(text, p.dictionary(), dictionary, (*abi.ArrowArray)(abi.Pointer(array.Dictionary)))
	}
	return nil
}

// bufferSizes gives the size of every buffer in bytes.
func bufferSizes(p place, format string, array *abi.ArrowArray, buffers []uintptr) ([]int64, error) {
	layout, known := layouts[format]
	if !known {
		return nil, Errorf(syscall.ENOTSUP, "%v no description for the format '%s'", p, Printable(format))
	}
	if array.Length > maxElements-array.Offset {
		return nil, p.refuse("array.length is %d at an offset of %d", array.Length, array.Offset)
	}
	end := array.Offset + array.Length
	sizes := []int64{(end + 7) / 8}
	if layout.valueBits > 0 {
		sizes = append(sizes, (end*layout.valueBits+7)/8)
	}
	if layout.offsetBytes > 0 {
		sizes = append(sizes, (end+1)*layout.offsetBytes)
	}
	if layout.hasData {
		sizes = append(sizes, 0)
	}
	if len(buffers) != len(sizes) {
		return nil, p.refuse("array.n_buffers is %d, format '%s' has %d", len(buffers), format, len(sizes))
	}
	if layout.hasData {
		last := lastOffset(layout, buffers[1], end)
		if last < 0 {
			return nil, p.refuse("the last offset is %d", last)
		}
		sizes[2] = last
	}
	return sizes, nil
}

func lastOffset(layout layout, offsets uintptr, index int64) int64 {
	switch {
	case offsets == 0:
		return 0
	case layout.offsetBytes == 4:
		return int64(int32(binary.NativeEndian.Uint32(memory(offsets, (index+1)*4)[index*4:])))
	default:
		return int64(binary.NativeEndian.Uint64(memory(offsets, (index+1)*8)[index*8:]))
	}
}

func bufferText(address uintptr, size int64) string {
	if address == 0 {
		return "-"
	}
	return fmt.Sprintf("%d:%x", size, memory(address, size))
}

// metadataText is the block of key-value pairs in hex. It says its size nowhere but in its lengths.
func metadataText(address uintptr) (string, error) {
	if address == 0 {
		return "-", nil
	}
	count := func(at int64) int64 {
		return int64(int32(binary.NativeEndian.Uint32(memory(address, at+4)[at:])))
	}
	pairs := count(0)
	if pairs < 0 {
		return "", Errorf(syscall.EINVAL, "metadata: the number of pairs is %d", pairs)
	}
	size := int64(4)
	for range 2 * pairs {
		length := count(size)
		if length < 0 {
			return "", Errorf(syscall.EINVAL, "metadata: the length of a text is %d", length)
		}
		size += 4 + length
	}
	return fmt.Sprintf("%x", memory(address, size)), nil
}

func memory(address uintptr, size int64) []byte {
	return unsafe.Slice((*byte)(abi.Pointer(address)), size)
}
