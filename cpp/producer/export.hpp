// Nodes of the catalogue as Arrow structs.
#pragma once

#include <cstdint>
#include <cstring>

#include "backend.hpp"
#include "catalogue.hpp"

namespace fletching::producer {

// What nobody has filled is zeroed, padding and `reserved` too. NULL is let pass.
template <class Struct>
void Zero(Struct* out) {
  if (out != nullptr) std::memset(out, 0, sizeof(*out));
}

// Each fills *out, which is zeroed before; on an exception it stays so, and nothing is left behind.
void ExportSchema(const Node& node, ArrowSchema* out);
void ExportArray(Backend& backend, const Node& node, ArrowDeviceArray* out);
void ExportStream(Backend& backend, const Case& what, int64_t batches, int64_t fail_at,
                  ArrowDeviceArrayStream* out);

// What get_last_error of such a stream says after the failure.
std::string FailureText(const Case& what, int64_t batch);

}  // namespace fletching::producer
