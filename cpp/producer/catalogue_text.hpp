// The catalogue as text, for tests: what an export of a case has to contain.
#ifndef FLETCHING_PRODUCER_CATALOGUE_TEXT_HPP
#define FLETCHING_PRODUCER_CATALOGUE_TEXT_HPP

#include <string>

namespace fletching::producer {

// The case as text; empty for an unknown case. It is made from the catalogue and not from an
// exported struct. One line per node, then one per buffer, then children, then the dictionary,
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
// for NULL, else its size in bytes, ':', and its bytes in hex. Numbers inside metadata and buffers
// are in the machine's byte order. Sizes: bitmap (validity, and values of 'b') (offset+length+7)/8;
// fixed-width values, views, type ids, and the offsets and sizes of list views
// width*(offset+length), as the offsets of a dense union; other offsets 4 or 8 times
// (offset+length+1); variable data offset number offset+length; a data buffer of a view array what
// the last buffer says, and that 8 times their number.
std::string case_text(const std::string& name);

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_CATALOGUE_TEXT_HPP
