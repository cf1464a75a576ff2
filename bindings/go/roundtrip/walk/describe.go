package walk

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

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
