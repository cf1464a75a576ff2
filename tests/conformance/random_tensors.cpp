// SPDX-License-Identifier: Apache-2.0
//
// Random tensors of one element type. Their elements must be unchanged after a round trip through
// the subject, and through the subject and another language in either order.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "chain.hpp"
#include "run.hpp"

namespace fletching::conformance {
namespace {

constexpr int kTensors = 60;    // per type
constexpr int kDimensions = 5;  // at most
constexpr int kExtents = 4;     // 0 to 3

struct Type {
  const char* name;
  DLDataType dtype;
  std::uint64_t flags;
  std::size_t bytes;  // per element
};

constexpr Type kTypes[] = {
    {"int8", {kDLInt, 8, 1}, 0, 1},
    {"uint16", {kDLUInt, 16, 1}, 0, 2},
    {"int32", {kDLInt, 32, 1}, 0, 4},
    {"float64", {kDLFloat, 64, 1}, 0, 8},
    {"bool", {kDLBool, 8, 1}, 0, 1},
    {"bfloat16", {kDLBfloat, 16, 1}, 0, 2},
    {"float8", {kDLFloat8_e4m3fn, 8, 1}, 0, 1},
    {"complex64", {kDLComplex, 64, 1}, 0, 8},
    {"complex128", {kDLComplex, 128, 1}, 0, 16},
    {"float4-padded", {kDLFloat4_e2m1fn, 4, 1}, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, 1},
    {"float6-grouped", {kDLFloat6_e3m2fn, 6, 4}, 0, 3},
};

/// A tensor with its memory and its number of deleter calls.
struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::vector<std::byte> memory;
  DLManagedTensorVersioned managed{};
  int deletions = 0;
};

class Random {
 public:
  /// A number from 0 to below `end`, the same on every machine.
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
  }

 private:
  std::mt19937_64 engine_{20261129};  // NOLINT(bugprone-random-generator-seed): repeatable
};

/// The rows are outermost, and the other dimensions in any order.
void make_tensor(const Type& type, Random& random, Tensor& out) {
  const auto ndim = static_cast<std::size_t>(random.below(kDimensions + 1));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < ndim; ++i) {
    out.shape.push_back(random.below(kExtents));
    order.push_back(i);
  }
  for (std::size_t i = ndim; i > 2; --i) {
    std::swap(order[i - 1],
              order[1 + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i) - 1))]);
  }
  out.strides.resize(ndim);
  std::int64_t step = 1;
  for (std::size_t i = ndim; i-- > 0;) {
    out.strides[order[i]] = step;
    if (out.shape[order[i]] > 1) step *= out.shape[order[i]];
  }
  const auto skipped = static_cast<std::size_t>(random.below(4));
  out.memory.resize((static_cast<std::size_t>(step) + skipped) * type.bytes);
  for (std::byte& byte : out.memory) byte = static_cast<std::byte>(random.below(256));
  out.managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  out.managed.flags = type.flags;
  out.managed.manager_ctx = &out;
  out.managed.deleter = [](DLManagedTensorVersioned* self) {
    ++static_cast<Tensor*>(self->manager_ctx)->deletions;
  };
  DLTensor& tensor = out.managed.dl_tensor;
  tensor.data = out.memory.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<std::int32_t>(ndim);
  tensor.dtype = type.dtype;
  tensor.shape = out.shape.data();
  tensor.strides = out.strides.data();
  tensor.byte_offset = skipped * type.bytes;
}

/// The elements in logical order.
std::vector<std::byte> elements(const DLTensor& tensor, std::size_t bytes) {
  std::int64_t count = 1;
  for (std::int32_t i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  std::vector<std::byte> found(static_cast<std::size_t>(count) * bytes);
  std::vector<std::int64_t> index(static_cast<std::size_t>(tensor.ndim));
  const auto* const first = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  for (std::size_t element = 0; element < static_cast<std::size_t>(count); ++element) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * tensor.strides[i];
    std::memcpy(&found[element * bytes], first + at * static_cast<std::int64_t>(bytes), bytes);
    for (std::size_t i = index.size(); i > 0; --i) {
      if (++index[i - 1] < tensor.shape[i - 1]) break;
      index[i - 1] = 0;
    }
  }
  return found;
}

/// A tensor without dimensions becomes an array of one element.
std::vector<std::int64_t> shape_of(const DLTensor& tensor) {
  if (tensor.ndim == 0) return {1};
  return {tensor.shape, tensor.shape + tensor.ndim};
}

void compare(Case& played, const Type& type, const DLTensor& expected,
             const DLManagedTensorVersioned& got) {
  const DLTensor& tensor = got.dl_tensor;
  const DLDataType dtype = tensor.dtype;
  constexpr std::uint64_t kPadded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  if (dtype.code != type.dtype.code || dtype.bits != type.dtype.bits ||
      dtype.lanes != type.dtype.lanes || (got.flags & kPadded) != (type.flags & kPadded)) {
    played.wrong("dtype: expected " + std::string(type.name) + ", got code " +
                 std::to_string(dtype.code) + ", " + std::to_string(dtype.bits) + " bits, " +
                 std::to_string(dtype.lanes) + " lanes, flags " + std::to_string(got.flags));
  } else if (shape_of(tensor) != shape_of(expected)) {
    played.wrong("shape: expected the same");
  } else if (elements(tensor, type.bytes) != elements(expected, type.bytes)) {
    played.wrong("elements: expected the same");
  }
}

/// Whether the result's elements are in the original's memory: false for a copy or an empty tensor.
bool shares_memory(const Tensor& made, const DLTensor& result) {
  const auto* const first = static_cast<const std::byte*>(result.data);
  const std::byte* const begin = made.memory.data();
  const bool empty = std::ranges::find(made.shape, 0) != made.shape.end();
  return !empty && std::less_equal<>()(begin, first) &&
         std::less<>()(first, begin + made.memory.size());
}

using Subjects = std::vector<const FletchingSubject*>;

/// Returns false if a subject does not support the tensors.
bool pass(Case& played, const Type& type, const Subjects& subjects, Random& random) {
  Tensor made;
  make_tensor(type, random, made);
  DLManagedTensorVersioned* tensor = &made.managed;
  for (const FletchingSubject* subject : subjects) {
    DLManagedTensorVersioned* out = nullptr;
    const Answer answer = ask(*subject, subject->tensor, std::exchange(tensor, nullptr), &out);
    if (answer.code != 0) {
      if (made.deletions != 1) played.wrong("deleter: expected a call after an error");
      if (answer.code == ENOTSUP || answer.code == ENOSYS) return false;
      played.wrong(std::string(subject->name) + ": expected success, got errno " +
                   std::to_string(answer.code) + ": " + answer.text);
      return true;
    }
    tensor = out;
  }
  compare(played, type, made.managed.dl_tensor, *tensor);
  if (made.deletions != 0 && shares_memory(made, tensor->dl_tensor)) {
    played.wrong("deleter: expected no call before that of the result");
  }
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
  if (made.deletions != 1) {
    played.wrong("deleter: expected 1 call, got " + std::to_string(made.deletions));
  }
  return true;
}

void play_subjects(Run& run, const Type& type, const std::string& name, const Subjects& subjects) {
  if (!run.begin(name.c_str())) return;
  Case played(run, name);
  for (const FletchingSubject* subject : subjects) {
    if (subject->tensor == nullptr) return played.not_supported();
  }
  Random random;
  for (int i = 0; i < kTensors && !played.is_wrong(); ++i) {
    if (!pass(played, type, subjects, random)) return played.not_supported();
  }
}

}  // namespace

void play_random_tensors(Run& run) {
  const std::vector<Link> chain = links(run.subject);
  for (const Type& type : kTypes) {
    const std::string name = std::string("random.") + type.name;
    play_subjects(run, type, name, {&run.subject});
    for (const Link& link : chain) {
      if (link.subject == nullptr || link.subject == &run.subject) continue;
      play_subjects(run, type, name + "." + link.name + "-before", {link.subject, &run.subject});
      play_subjects(run, type, name + "." + link.name + "-behind", {&run.subject, link.subject});
    }
  }
}

}  // namespace fletching::conformance
