// SPDX-License-Identifier: Apache-2.0
//
// The checks of a device. A check asserts something and returns, or throws: a
// Error with ENODEV when it cannot run here, anything else when it has failed.
#ifndef FLETCHING_TESTS_GPU_CHECKS_HPP
#define FLETCHING_TESTS_GPU_CHECKS_HPP

#include <cstdint>

#include "asserter.hpp"

namespace fletching::gpu {

// --- producer_checks.cpp: the reference producer, its kernel and its gate. `backend` as there.

void check_kernel(Asserter& asserter, const char* backend);
/// Every case with data: behind a shut gate, with and without the wait (gate.h).
void check_gate(Asserter& asserter, const char* backend);
void check_gate_control(Asserter& asserter, const char* backend);
/// The same of the batches of a stream.
void check_stream_gate(Asserter& asserter, const char* backend);
void check_stream_gate_control(Asserter& asserter, const char* backend);

// --- event_checks.cpp: the library's own operations.

/// Waits behind a gate that is never opened, to test the watchdog.
void check_hang(Asserter& asserter);

/// The library has every function of the runtime's table.
void check_symbols(Asserter& asserter);
/// The three operations of SyncEvent, before and after the work is done.
void check_sync_event(Asserter& asserter);
/// A hundred rounds of a stream that waits and one that does not.
void check_race(Asserter& asserter);
void check_release_after(Asserter& asserter);
/// `count` arrays that own memory of the device go from one stream to another.
void check_handoffs(Asserter& asserter, std::int64_t count);
void check_thread_without_context(Asserter& asserter);
void check_two_threads(Asserter& asserter);

// --- capture_checks.cpp: stream capture and graphs.

/// No capture is disturbed, no array released early, and a captured stream is refused.
void check_capture(Asserter& asserter);
/// Events that belong to each launch of a graph.
void check_graph_events(Asserter& asserter);

// --- exchange_checks.cpp: DLPack and the CUDA Array Interface, both ways, behind a gate.

void check_to_dlpack(Asserter& asserter);
void check_from_dlpack(Asserter& asserter);
void check_to_cuda_array(Asserter& asserter);
void check_from_cuda_array(Asserter& asserter);

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_CHECKS_HPP
