// A stream of a case for an async handler.
#pragma once

#include <cstdint>
#include <memory>

#include "catalogue.hpp"
#include "fletching/abi.h"
#include "memory.hpp"

namespace fletching::producer {

// Begins a stream; the handler is called on another thread. Throws with the handler untouched.
void RunAsync(std::shared_ptr<Filler> filler, const Case& what, int64_t batches, int64_t fail_at,
              ArrowAsyncDeviceStreamHandler* handler);

// Blocks until no such stream is left.
void AwaitAsync() noexcept;

}  // namespace fletching::producer
