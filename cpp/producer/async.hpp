// A stream of a case for an async handler.
#ifndef FLETCHING_PRODUCER_ASYNC_HPP
#define FLETCHING_PRODUCER_ASYNC_HPP

#include <cstdint>
#include <memory>

#include "catalogue.hpp"
#include "fletching/abi.h"
#include "memory.hpp"

namespace fletching::producer {

// Begins a stream; the handler is called on another thread. Throws with the handler untouched.
void run_async(std::shared_ptr<Filler> filler, const Case& what, int64_t batches, int64_t fail_at,
               ArrowAsyncDeviceStreamHandler* handler);

// Blocks until no such stream is left.
void await_async() noexcept;

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_ASYNC_HPP
