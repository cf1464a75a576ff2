// SPDX-License-Identifier: Apache-2.0
//
// The part of fletching/_validate.py that any thread may run.
#include <cstdint>

#include "core.hpp"
#include "fletching/layout.h"
#include "fletching/validate.h"

namespace fletching::python {
namespace {

/// A FletchingFindingReport whose context is a Python function.
void report_finding(void* context, const FletchingFinding* finding) noexcept {
  const AnyThreadGil gil;
  if (!gil) return;
  auto* const function = static_cast<PyObject*>(context);
  PyObject* const result =
      PyObject_CallFunction(function, "yyyyyy", finding->rule, finding->path, finding->message,
                            finding->severity, finding->party, finding->history);
  if (result == nullptr) PyErr_WriteUnraisable(function);
  Py_XDECREF(result);
}

}  // namespace

void bind_validate(nb::module_& module) {
  module.def("finding_report", [] { return reinterpret_cast<uintptr_t>(&report_finding); });
  module.def("layout", [] { return uint64_t{FLETCHING_LAYOUT}; });
}

}  // namespace fletching::python
