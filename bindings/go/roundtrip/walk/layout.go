package walk

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fletching/fletching/bindings/go/abi"
)

// What a buffer holds.
type kind int

const (
	values  kind = iota // of width bits, as many as there are elements
	offsets             // of width bytes, one more than there are elements
	data                // as many bytes as the last offset of the buffer before says
	viewed              // the data buffers of a view array, and behind them their sizes
)

type part struct {
	kind  kind
	width int64
}

var bitmap = part{values, 1}

// By format. Those with parameters are in partsOf, and in valueBits.
var layouts = map[string][]part{
	"n": {}, "+r": {},
	"+s": {bitmap},
	"+l": {bitmap, {offsets, 4}}, "+m": {bitmap, {offsets, 4}}, "+L": {bitmap, {offsets, 8}},
	"+vl": {bitmap, {values, 32}, {values, 32}}, "+vL": {bitmap, {values, 64}, {values, 64}},
	"u": {bitmap, {offsets, 4}, {data, 0}}, "z": {bitmap, {offsets, 4}, {data, 0}},
	"U": {bitmap, {offsets, 8}, {data, 0}}, "Z": {bitmap, {offsets, 8}, {data, 0}},
	"vu": {bitmap, {values, 128}, {viewed, 0}}, "vz": {bitmap, {values, 128}, {viewed, 0}},
}

// Of the types with one buffer of values behind the validity bitmap.
var widths = map[string]int64{
	"b": 1, "c": 8, "C": 8, "s": 16, "S": 16, "e": 16, "i": 32, "I": 32, "f": 32, "l": 64, "L": 64, "g": 64,
	"tdD": 32, "tdm": 64, "tts": 32, "ttm": 32, "ttu": 64, "ttn": 64,
	"tDs": 64, "tDm": 64, "tDu": 64, "tDn": 64, "tiM": 32, "tiD": 64, "tin": 128,
}

func partsOf(format string) (parts []part, known bool) {
	if parts, known := layouts[format]; known {
		return parts, true
	}
	switch {
	case strings.HasPrefix(format, "+w:"):
		return []part{bitmap}, true
	case strings.HasPrefix(format, "+us:"):
		return []part{{values, 8}}, true
	case strings.HasPrefix(format, "+ud:"):
		return []part{{values, 8}, {values, 32}}, true
	}
	bits, known := valueBits(format)
	return []part{bitmap, {values, bits}}, known
}

func valueBits(format string) (bits int64, known bool) {
	if bits, known := widths[format]; known {
		return bits, true
	}
	head, parameters, _ := strings.Cut(format, ":")
	numbers := strings.Split(parameters, ",")
	switch {
	case head == "d" && len(numbers) == 2:
		return 128, true
	case head == "d" && len(numbers) == 3:
		bits, err := strconv.ParseInt(numbers[2], 10, 32)
		return bits, err == nil && bits >= 0
	case head == "w":
		size, err := strconv.ParseInt(parameters, 10, 32)
		return 8 * size, err == nil && size >= 0
	}
	isTimestamp := len(head) == 3 && strings.HasPrefix(head, "ts") && strings.Contains("smun", head[2:])
	return 64, isTimestamp && len(format) > len(head)
}

// bufferSizes gives the size of every buffer in bytes.
func bufferSizes(p place, format string, array *abi.ArrowArray, buffers []uintptr) ([]int64, error) {
	parts, known := partsOf(format)
	if !known {
		return nil, Errorf(syscall.ENOTSUP, "%v no description for the format '%s'", p, Printable(format))
	}
	widest := int64(64)
	for _, part := range parts {
		widest = max(widest, part.width)
	}
	// Sizes in bits, with one element more than there are, must not overflow.
	if most := math.MaxInt64/widest - 2; array.Length > most || array.Offset > most-array.Length {
		return nil, p.refuse("array.length is %d at an offset of %d", array.Length, array.Offset)
	}
	isView := slices.Contains(parts, part{viewed, 0})
	if len(buffers) < len(parts) || len(buffers) > len(parts) && !isView {
		more := ""
		if isView {
			more = " or more"
		}
		return nil, p.refuse("array.n_buffers is %d, format '%s' has %d%s", len(buffers), format, len(parts), more)
	}
	end := array.Offset + array.Length
	var sizes []int64
	var last int64
	for i, part := range parts {
		switch part.kind {
		case values:
			sizes = append(sizes, (end*part.width+7)/8)
		case offsets:
			if last = lastOffset(part.width, buffers[i], end); last < 0 {
				return nil, p.refuse("the last offset is %d", last)
			}
			sizes = append(sizes, (end+1)*part.width)
		case data:
			sizes = append(sizes, last)
		case viewed:
			more, err := viewedSizes(p, buffers)
			if err != nil {
				return nil, err
			}
			sizes = append(sizes, more...)
		}
	}
	return sizes, nil
}

func lastOffset(width int64, offsets uintptr, index int64) int64 {
	switch {
	case offsets == 0:
		return 0
	case width == 4:
		return int64(int32(binary.NativeEndian.Uint32(memory(offsets, (index+1)*4)[index*4:])))
	default:
		return int64(binary.NativeEndian.Uint64(memory(offsets, (index+1)*8)[index*8:]))
	}
}

func viewedSizes(p place, buffers []uintptr) ([]int64, error) {
	count := int64(len(buffers) - 3)
	last := buffers[len(buffers)-1]
	if count > 0 && last == 0 {
		return nil, p.refuse("the sizes of the data buffers are NULL")
	}
	var sizes []int64
	for i := range count {
		size := int64(binary.NativeEndian.Uint64(memory(last+uintptr(8*i), 8)))
		if size < 0 {
			return nil, p.refuse("the size of data buffer %d is %d", i, size)
		}
		sizes = append(sizes, size)
	}
	return append(sizes, 8*count), nil
}
