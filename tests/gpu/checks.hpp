// SPDX-License-Identifier: Apache-2.0
//
// The checks of a device. A check returns, or throws: an Error with ENODEV if it cannot run on this
// machine, anything else if it failed.
#ifndef FLETCHING_TESTS_GPU_CHECKS_HPP
#define FLETCHING_TESTS_GPU_CHECKS_HPP

#include <cstdint>

#include "asserter.hpp"

namespace fletching::gpu {

// --- producer_checks.cpp: the reference producer, its kernel and its gate; `backend` names it.

void check_kernel(Asserter& asserter, const char* backend);
/// Every case with data, behind a shut gate, with and without the wait (gate.h).
void check_gate(Asserter& asserter, const char* backend);
void check_gate_control(Asserter& asserter, const char* backend);
/// Like check_gate, for the batches of a stream.
void check_stream_gate(Asserter& asserter, const char* backend);
void check_stream_gate_control(Asserter& asserter, const char* backend);

// --- event_checks.cpp: the library's operations.

/// Waits behind a gate that is never opened, to test the watchdog.
void check_hang(Asserter& asserter);

/// The driver has every function of the runtime's table.
void check_symbols(Asserter& asserter);
/// The three operations of SyncEvent, before and after the work is done.
void check_sync_event(Asserter& asserter);
/// A hundred rounds with a stream that waits and one that does not.
void check_race(Asserter& asserter);
void check_release_after(Asserter& asserter);
/// Passes `count` arrays that own device memory from one stream to another.
void check_handoffs(Asserter& asserter, std::int64_t count);
void check_thread_without_context(Asserter& asserter);
void check_two_threads(Asserter& asserter);

// --- capture_checks.cpp: stream capture and graphs.

/// Captures are not disturbed, arrays are not released early, and captured streams are rejected.
void check_capture(Asserter& asserter);
/// Events that each launch of a graph waits for and records.
void check_graph_events(Asserter& asserter);

// --- exchange_checks.cpp: DLPack and the CUDA Array Interface in both directions, behind a gate.

void check_to_dlpack(Asserter& asserter);
void check_from_dlpack(Asserter& asserter);
void check_to_cuda_array(Asserter& asserter);
void check_from_cuda_array(Asserter& asserter);

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_CHECKS_HPP
