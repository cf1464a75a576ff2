// The catalogue as text, for tests: the expected content of each exported case.
#ifndef FLETCHING_PRODUCER_CATALOGUE_TEXT_HPP
#define FLETCHING_PRODUCER_CATALOGUE_TEXT_HPP

#include <string>

namespace fletching::producer {

// Returns the case as text; empty for an unknown case. It is made from the catalogue, not from an
// exported struct. One line per node, then one per buffer, then the children, then the dictionary,
// depth first; lines end with '\n':
//
//   / format=+s name= flags=2 metadata=- length=3 null_count=0 offset=0
//   / buffer 0 -
//   /0 format=i name=a flags=2 metadata=- length=3 null_count=1 offset=0
//   /0 buffer 0 1:05
//   /0 buffer 1 12:010000000200000003000000
//   /1 format=c name=b flags=2 ...
//   /1/d format=u name= ...            (the dictionary of /1)
//
// name is empty for NULL. metadata is the encoded block in hex, or '-' for NULL. A buffer is '-'
// for NULL, otherwise its size in bytes, ':', and its bytes in hex. Numbers inside metadata and
// buffers are in native byte order. Sizes in bytes:
//   bitmaps (validity, and values of 'b'): (offset+length+7)/8
//   fixed-width values, views, type ids, offsets and sizes of list views, offsets of a dense
//   union: width*(offset+length)
//   other offsets: 4 or 8 times (offset+length+1)
//   variable-size data: the offset at index offset+length
//   data buffers of a view array: as given by the last buffer, which has 8 bytes for each of them
std::string case_text(const std::string& name);

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_CATALOGUE_TEXT_HPP
