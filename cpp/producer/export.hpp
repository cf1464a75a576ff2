// Exports nodes of the catalogue as Arrow structs.
#ifndef FLETCHING_PRODUCER_EXPORT_HPP
#define FLETCHING_PRODUCER_EXPORT_HPP

#include <cstdint>
#include <cstring>

#include "catalogue.hpp"
#include "memory.hpp"
#include "registry.hpp"

namespace fletching::producer {

// Zeroes the whole struct, including padding and `reserved`. NULL is allowed.
template <class Struct>
void zero(Struct* out) {
  if (out != nullptr) std::memset(out, 0, sizeof(*out));
}

// Each fills *out, which must be zeroed. On an exception *out stays zeroed and no memory leaks.
void export_schema(const Node& node, ArrowSchema* out);
void export_array(std::shared_ptr<Filler> filler, const Node& node, ArrowDeviceArray* out);
// Fills both or neither.
void export_case(std::shared_ptr<Filler> filler, const Case& what, ArrowSchema* schema,
                 ArrowDeviceArray* array);
void export_stream(std::shared_ptr<Filler> filler, const Case& what, int64_t batches,
                   int64_t fail_at, ArrowDeviceArrayStream* out);

// The message that get_last_error returns after the stream fails at `batch`.
std::string failure_text(const Case& what, int64_t batch);

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_EXPORT_HPP
