// Compares structs returned by foreign code with the catalogue.
#ifndef FLETCHING_PRODUCER_VERIFY_HPP
#define FLETCHING_PRODUCER_VERIFY_HPP

#include <cstdint>

#include "backend.hpp"
#include "catalogue.hpp"

namespace fletching::producer {

// Both throw an Error with EBADMSG that names the first difference.
void verify_array(Backend& backend, const Case& what, const ArrowSchema& schema,
                  const ArrowDeviceArray& array);
// Always releases `stream`.
void verify_stream(Backend& backend, const Case& what, int64_t batches, int64_t fail_at,
                   ArrowDeviceArrayStream* stream);

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_VERIFY_HPP
