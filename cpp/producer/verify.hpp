// Structs that came back from foreign code, compared with the catalogue.
#pragma once

#include <cstdint>

#include "backend.hpp"
#include "catalogue.hpp"

namespace fletching::producer {

// Both throw an Error of EBADMSG that names the first difference.
void VerifyArray(Backend& backend, const Case& what, const ArrowSchema& schema,
                 const ArrowDeviceArray& array);
// Releases `stream`, whatever happens.
void VerifyStream(Backend& backend, const Case& what, int64_t batches, int64_t fail_at,
                  ArrowDeviceArrayStream* stream);

}  // namespace fletching::producer
