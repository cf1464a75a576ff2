// Sends the stream of a case to an async handler.
#ifndef FLETCHING_PRODUCER_ASYNC_HPP
#define FLETCHING_PRODUCER_ASYNC_HPP

#include <cstdint>
#include <memory>

#include "catalogue.hpp"
#include "fletching/abi.h"
#include "memory.hpp"

namespace fletching::producer {

// Starts a stream. The handler is called on another thread. If it throws, the handler is untouched.
void run_async(std::shared_ptr<Filler> filler, const Case& what, int64_t batches, int64_t fail_at,
               ArrowAsyncDeviceStreamHandler* handler);

// Blocks until every stream from run_async has ended and is released.
void await_async() noexcept;

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_ASYNC_HPP
