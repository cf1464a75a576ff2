// libfletching_transit_cpp: the functions of transit.h.
#include "transit.h"

#include <cstring>
#include <string>

#include "reexport.hpp"
#include "text.hpp"

using fletching::roundtrip::fail;
using fletching::roundtrip::guarded;
using fletching::roundtrip::write_message;

int FletchingTransitArray(ArrowSchema* schema, ArrowDeviceArray* array, ArrowSchema* out_schema,
                          ArrowDeviceArray* out_array, char* message, size_t capacity) {
  std::string text;
  const int code = guarded(text, [&] {
    if (schema == nullptr) fail(EINVAL, "schema is NULL");
    if (array == nullptr) fail(EINVAL, "array is NULL");
    if (out_schema == nullptr) fail(EINVAL, "out_schema is NULL");
    if (out_array == nullptr) fail(EINVAL, "out_array is NULL");
    fletching::roundtrip::reexport(*schema, *array, *out_schema, *out_array);
  });
  write_message(text, message, capacity);
  return code;
}

int64_t FletchingTransitExported(void) { return fletching::roundtrip::exported_count(); }

int64_t FletchingTransitReleased(void) { return fletching::roundtrip::released_count(); }
