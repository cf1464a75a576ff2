// Nodes of the catalogue as Arrow structs.
#pragma once

#include <cstdint>

#include "backend.hpp"
#include "catalogue.hpp"

namespace fletching::producer {

// Each fills *out, all of it; on an exception *out is zeroed and nothing is left behind.
void ExportSchema(const Node& node, ArrowSchema* out);
void ExportArray(Backend& backend, const Node& node, ArrowDeviceArray* out);
void ExportStream(Backend& backend, const Case& what, int64_t batches, int64_t fail_at,
                  ArrowDeviceArrayStream* out);

// What get_last_error of such a stream says after the failure.
std::string FailureText(const Case& what, int64_t batch);

}  // namespace fletching::producer
