// Nodes of the catalogue as Arrow structs.
#pragma once

#include <cstdint>
#include <cstring>

#include "catalogue.hpp"
#include "memory.hpp"

namespace fletching::producer {

// What nobody has filled is zeroed, padding and `reserved` too. NULL is let pass.
template <class Struct>
void Zero(Struct* out) {
  if (out != nullptr) std::memset(out, 0, sizeof(*out));
}

// Each fills *out, which is zeroed before; on an exception it stays so, and nothing is left behind.
void ExportSchema(const Node& node, ArrowSchema* out);
void ExportArray(std::shared_ptr<Filler> filler, const Node& node, ArrowDeviceArray* out);
// Both or none of them.
void Export(std::shared_ptr<Filler> filler, const Case& what, ArrowSchema* schema,
            ArrowDeviceArray* array);
void ExportStream(std::shared_ptr<Filler> filler, const Case& what, int64_t batches,
                  int64_t fail_at, ArrowDeviceArrayStream* out);

// What get_last_error of such a stream says after the failure.
std::string FailureText(const Case& what, int64_t batch);

}  // namespace fletching::producer
