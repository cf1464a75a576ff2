// SPDX-License-Identifier: Apache-2.0
//
// The functions of the two kinds of DLPack tensors, by their type.
#ifndef FLETCHING_TESTS_CONFORMANCE_TENSORS_HPP
#define FLETCHING_TESTS_CONFORMANCE_TENSORS_HPP

#include "run.hpp"

namespace fletching::conformance {

inline int export_tensor(const char* name, DLManagedTensorVersioned** out) {
  return FletchingHostileExportTensor(name, out, nullptr);
}
inline int export_tensor(const char* name, DLManagedTensor** out) {
  return FletchingHostileExportLegacyTensor(name, out, nullptr);
}
inline int export_data(const char* name, DLManagedTensorVersioned** out,
                       FletchingMessage* message) {
  return FletchingCorpusExportTensor(name, out, message);
}
inline int export_data(const char* name, DLManagedTensor** out, FletchingMessage* message) {
  return FletchingCorpusExportLegacyTensor(name, out, message);
}

inline int validate(DLManagedTensorVersioned** tensor, const FletchingValidateOptions& options) {
  return FletchingValidateTensor(tensor, &options, nullptr);
}
inline int validate(DLManagedTensor** tensor, const FletchingValidateOptions& options) {
  return FletchingValidateLegacyTensor(tensor, &options, nullptr);
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_TENSORS_HPP
