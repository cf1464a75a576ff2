// SPDX-License-Identifier: Apache-2.0
//
// DLPack tensors: the subject imports one and exports it again.
#include "tensors.hpp"

namespace fletching::conformance {
namespace {

template <class Raw>
struct HeldTensor {
  HeldTensor() = default;
  HeldTensor(const HeldTensor&) = delete;
  HeldTensor& operator=(const HeldTensor&) = delete;
  ~HeldTensor() {
    if (value != nullptr && value->deleter != nullptr) value->deleter(value);
  }

  Raw* value = nullptr;
};

auto function_of(const FletchingSubject& subject, const DLManagedTensorVersioned* /*kind*/) {
  return subject.tensor;
}
auto function_of(const FletchingSubject& subject, const DLManagedTensor* /*kind*/) {
  return subject.legacy_tensor;
}

/// The tensor is moved in, so a subject that rejects it must have deleted it.
template <class Raw>
Answer pass(const FletchingSubject& subject, HeldTensor<Raw>& in, HeldTensor<Raw>& out) {
  Raw* const moved = std::exchange(in.value, nullptr);
  const Answer answer = ask(subject, function_of(subject, moved), moved, &out.value);
  if (answer.code != 0) out.value = nullptr;
  return answer;
}

std::int64_t expected_items(std::string_view name) {
  if (name == "tensor.empty") return 0;
  return name == "tensor.scalar" ? 1 : 3;
}

/// Checks for the peer's int32 values 1, 2, 3, or the first of them.
void check_tensor(Case& played, const DLTensor& tensor) {
  std::int64_t items = 1;
  for (std::int32_t i = 0; i < tensor.ndim; ++i) items *= tensor.shape[i];
  if (items != expected_items(played.name())) {
    return played.wrong("expected " + std::to_string(expected_items(played.name())) +
                        " items, got " + std::to_string(items));
  }
  if (tensor.device.device_type != kDLCPU || tensor.ndim > 1) return;
  const std::int64_t stride = tensor.ndim == 0 || tensor.strides == nullptr ? 1 : tensor.strides[0];
  const auto* const first = reinterpret_cast<const std::int32_t*>(
      static_cast<const std::byte*>(tensor.data) + tensor.byte_offset);
  for (std::int64_t i = 0; i < items; ++i) {
    if (first[i * stride] != i + 1) return played.wrong("expected the values 1, 2, 3");
  }
}

/// Checks the fields that every exported tensor must have.
template <class Raw>
void check_fields(Case& played, HeldTensor<Raw>& out) {
  if (validate(&out.value, layer(FLETCHING_VALIDATE_SHAPE, "producer")) != 0) {
    return played.wrong("expected a tensor of version 1");
  }
  const DLTensor& tensor = out.value->dl_tensor;
  const DLDataType type = tensor.dtype;
  if (type.code != kDLInt || type.bits != 32 || type.lanes != 1) {
    played.wrong("dtype: expected int32");
  } else if (tensor.data == nullptr && expected_items(played.name()) != 0) {
    played.wrong("data: expected an address");
  } else if (tensor.ndim > 0 && tensor.strides == nullptr) {
    played.wrong("strides: expected one for each size");
  }
}

template <class Raw>
void play_peers(Run& run, std::int32_t party) {
  const bool is_supported = function_of(run.subject, static_cast<Raw*>(nullptr)) != nullptr;
  each_peer(run, party, is_supported, [&](Case& played, const Peer& peer) {
    HeldTensor<Raw> in;
    HeldTensor<Raw> out;
    export_tensor(played.c_str(), &in.value);
    const Answer answer = pass(run.subject, in, out);
    judge(played, peer, answer, true);
    if (answer.code == 0 && peer.outcome == kFletchingHostileAccepted) {
      check_fields(played, out);
      if (!played.is_wrong()) check_tensor(played, out.value->dl_tensor);
    }
  });
}

template <class Raw>
void play_data(Run& run, std::int32_t kind) {
  const bool is_supported = function_of(run.subject, static_cast<Raw*>(nullptr)) != nullptr;
  each_data(run, kind, is_supported, [&](Case& played, const Data& data) {
    HeldTensor<Raw> in;
    HeldTensor<Raw> out;
    played.call("export", [&](FletchingMessage* message) {
      return export_data(played.c_str(), &in.value, message);
    });
    const Answer answer = pass(run.subject, in, out);
    played.answered(answer, true);
    if (!data.is_refused) return played.expect_accepted(answer);
    if (answer.code == 0) played.wrong("expected an error, got success", data.rule);
  });
}

}  // namespace

void play_tensors(Run& run) {
  play_peers<DLManagedTensorVersioned>(run, kFletchingHostileTensor);
  play_peers<DLManagedTensorVersioned>(run, kFletchingHostileVersionedTensor);
  play_data<DLManagedTensorVersioned>(run, kFletchingCorpusTensor);
}

void play_legacy_tensors(Run& run) {
  play_peers<DLManagedTensor>(run, kFletchingHostileTensor);
  play_data<DLManagedTensor>(run, kFletchingCorpusLegacyTensor);
}

}  // namespace fletching::conformance
