// SPDX-License-Identifier: Apache-2.0
// Functions that spec/runtimes.yaml does not name: captures and graphs.
#include "../engine/errors.hpp"
#include "face.hpp"

using namespace fletching::standin;
using namespace fletching::standin::hip;
using fletching::standin::engine;

FLETCHING_STANDIN_EXPORT hipError_t hipStreamBeginCapture(hipStream_t stream,
                                                          hipStreamCaptureMode mode) {
  return runtime(__func__, [&] {
    const int wanted = number_of(mode);
    require(wanted >= 0 && wanted <= static_cast<int>(CaptureMode::kRelaxed),
            Status::kInvalidValue);
    engine().captures.begin(find(stream, DefaultStream::kLegacy), static_cast<CaptureMode>(wanted));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return runtime(__func__, [&] {
    store(graph, hipGraph_t{});
    *graph = static_cast<hipGraph_t>(engine().end_capture(*find(stream, DefaultStream::kLegacy)));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* executable,
                                                                 hipGraph_t graph,
                                                                 unsigned long long flags) {
  return runtime(__func__, [&] {
    require(executable != nullptr && flags == 0, Status::kInvalidValue);
    *executable = static_cast<hipGraphExec_t>(engine().instantiate(graph));
  });
}

FLETCHING_STANDIN_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
  return runtime(__func__,
                 [&] { engine().launch(executable, *find(stream, DefaultStream::kLegacy)); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipGraphDestroy(hipGraph_t graph) {
  return runtime_freeing(__func__, [&] { engine().destroy_graph(graph); });
}

FLETCHING_STANDIN_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
  return runtime_freeing(__func__, [&] { engine().destroy_executable(executable); });
}
