// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// KeyValue is a pair of metadata. Key and value may contain any bytes.
type KeyValue struct {
	Key, Value string
}

// Metadata is an ordered list of pairs. A key may occur more than once.
//
// See "ArrowSchema.metadata" in the Arrow C data interface.
type Metadata []KeyValue

// Get returns the value of the first pair with this key.
func (m Metadata) Get(key string) (value string, found bool) {
	for _, pair := range m {
		if pair.Key == key {
			return pair.Value, true
		}
	}
	return "", false
}

// Encode returns the bytes for ArrowSchema.metadata. Without pairs it returns the four bytes of a zero count, where a
// schema without metadata has NULL.
//
// Errors: EINVAL for more than 2^31-1 pairs, and for a key or value of more bytes.
func (m Metadata) Encode() ([]byte, error) {
	block, err := appendLength(nil, "too many pairs", len(m))
	if err != nil {
		return nil, err
	}
	for _, pair := range m {
		for _, text := range [...]string{pair.Key, pair.Value} {
			if block, err = appendLength(block, "text too long", len(text)); err != nil {
				return nil, err
			}
			block = append(block, text...)
		}
	}
	return block, nil
}

// encodedSize returns the length of the encoded metadata.
func (m Metadata) encodedSize() int {
	size := 4
	for _, pair := range m {
		size += 8 + len(pair.Key) + len(pair.Value)
	}
	return size
}

func appendLength(block []byte, what string, length int) ([]byte, error) {
	if length > math.MaxInt32 {
		return nil, invalid("metadata: %s: expected at most %d, got %d", what, math.MaxInt32, length)
	}
	return binary.NativeEndian.AppendUint32(block, uint32(length)), nil
}

// DecodeMetadata returns the pairs of an encoded block, which may be followed by other bytes.
//
// Errors: EINVAL for a negative count or length, and for a block that does not end within the bytes.
func DecodeMetadata(block []byte) (Metadata, error) {
	return decode(func(from, count int) ([]byte, bool) {
		if count > len(block)-from {
			return nil, false
		}
		return block[from : from+count], true
	})
}

// metadataAt copies the block at a C address; NULL is empty metadata. A block with wrong lengths is read past its end,
// which cannot be detected.
func metadataAt(address uintptr) (Metadata, error) {
	if address == 0 {
		return nil, nil
	}
	return decode(func(from, count int) ([]byte, bool) {
		return unsafe.Slice((*byte)(unsafe.Add(abi.Pointer(address), from)), count), true
	})
}

// decode reads a block with a function that returns count bytes from an offset, or false past the end.
func decode(bytes func(from, count int) ([]byte, bool)) (Metadata, error) {
	position := 0
	number := func(what string, pair int) (int, error) {
		four, fits := bytes(position, 4)
		if !fits {
			return 0, malformed(what, pair, position, "truncated: expected 4 bytes")
		}
		value := int32(binary.NativeEndian.Uint32(four))
		if value < 0 {
			return 0, malformed(what, pair, position, fmt.Sprintf("negative: expected 0 or more, got %d", value))
		}
		position += 4
		return int(value), nil
	}
	count, err := number("number of pairs", -1)
	if err != nil {
		return nil, err
	}
	var pairs Metadata // not preallocated: the count is untrusted
	for pair := range count {
		var texts [2]string
		for i, what := range [...]string{"length of key", "length of value"} {
			length, err := number(what, pair)
			if err != nil {
				return nil, err
			}
			text, fits := bytes(position, length)
			if !fits {
				return nil, malformed(what, pair, position-4,
					fmt.Sprintf("too large: expected at most the bytes that follow, got %d", length))
			}
			texts[i] = string(text)
			position += length
		}
		pairs = append(pairs, KeyValue{texts[0], texts[1]})
	}
	return pairs, nil
}

// malformed returns an error about a pair, or about the block if pair is -1.
func malformed(what string, pair, position int, why string) error {
	if pair >= 0 {
		what = fmt.Sprintf("%s %d", what, pair)
	}
	return invalid("metadata: %s at byte %d: %s", what, position, why)
}
