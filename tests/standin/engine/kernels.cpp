// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "memory.hpp"
#include "ranges.h"

namespace fletching::standin {

// A built-in kernel.
struct Kernel {
  std::string_view name;
  std::function<void(Context&)> (*bind)(std::uint64_t threads, void** arguments, Memory& memory);
};

namespace {

constexpr std::string_view kHeading = "FLETCHING-STANDIN-IMAGE 1\n";

template <class T>
T argument(void** arguments, int index) {
  require(arguments != nullptr && arguments[index] != nullptr, Status::kInvalidValue);
  T value;
  std::memcpy(&value, arguments[index], sizeof(value));
  return value;
}

std::uint64_t elements(std::int64_t n, std::uint64_t threads) {
  return n < 0 ? 0 : std::min(static_cast<std::uint64_t>(n), threads);
}

// The memory that a kernel on this device can access at an address. Other accesses fail.
struct View {
  std::shared_ptr<Allocation> owner;
  std::byte* data = nullptr;
};

View view(std::uintptr_t address, std::size_t element, std::uint64_t count, const Context& context,
          Memory& memory) {
  require(address % element == 0, Status::kIllegalAddress);
  View view;
  view.owner = memory.find(address);
  require(view.owner != nullptr, Status::kIllegalAddress);
  const std::size_t offset = address - view.owner->address;
  require(count <= (view.owner->size - offset) / element, Status::kIllegalAddress);
  require(
      view.owner->kind != MemoryKind::kDevice || view.owner->context->device() == context.device(),
      Status::kIllegalAddress);
  view.data = view.owner->bytes.get() + offset;
  return view;
}

template <class Each>
std::function<void(Context&)> bind_each(std::uint64_t threads, void** arguments, Memory& memory,
                                        Each each) {
  const auto address = argument<std::uintptr_t>(arguments, 0);
  const std::uint64_t count = elements(argument<std::int64_t>(arguments, 1), threads);
  const auto value = argument<std::uint32_t>(arguments, 2);
  return [=, &memory](Context& context) {
    if (count == 0) return;
    const View data = view(address, sizeof(std::int32_t), count, context, memory);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint32_t element = 0;
      std::memcpy(&element, data.data + i * sizeof(element), sizeof(element));
      element = each(element, value);
      std::memcpy(data.data + i * sizeof(element), &element, sizeof(element));
    }
  };
}

std::function<void(Context&)> bind_add(std::uint64_t threads, void** arguments, Memory& memory) {
  return bind_each(threads, arguments, memory,
                   [](std::uint32_t old, std::uint32_t value) { return old + value; });
}

std::function<void(Context&)> bind_fill(std::uint64_t threads, void** arguments, Memory& memory) {
  return bind_each(threads, arguments, memory,
                   [](std::uint32_t, std::uint32_t value) { return value; });
}

std::function<void(Context&)> bind_copy(std::uint64_t threads, void** arguments, Memory& memory) {
  const auto to = argument<std::uintptr_t>(arguments, 0);
  const auto from = argument<std::uintptr_t>(arguments, 1);
  const std::uint64_t count = elements(argument<std::int64_t>(arguments, 2), threads);
  return [=, &memory](Context& context) {
    if (count == 0) return;
    const View target = view(to, sizeof(std::int32_t), count, context, memory);
    const View source = view(from, sizeof(std::int32_t), count, context, memory);
    std::memmove(target.data, source.data, count * sizeof(std::int32_t));
  };
}

std::uintptr_t address_of(const unsigned char* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

template <class Each>
std::function<void(Context&)> bind_ranges(std::uint64_t threads, void** arguments, Memory& memory,
                                          Each each) {
  const auto ranges = argument<Ranges>(arguments, 0);
  const std::uint64_t count = threads / Ranges::kThreads;
  require(count <= Ranges::kMost, Status::kInvalidValue);
  const std::vector<Ranges::Entry> entries(ranges.entries, ranges.entries + count);
  return [=, &memory](Context& context) {
    for (const Ranges::Entry& entry : entries) {
      if (entry.bytes == 0) continue;
      const View to = view(address_of(entry.to), 1, entry.bytes, context, memory);
      const View from = view(address_of(entry.from), 1, entry.bytes, context, memory);
      std::transform(from.data, from.data + entry.bytes, to.data, each);
    }
  };
}

std::function<void(Context&)> bind_invert(std::uint64_t threads, void** arguments, Memory& memory) {
  return bind_ranges(threads, arguments, memory, [](std::byte old) { return ~old; });
}

std::function<void(Context&)> bind_copy_bytes(std::uint64_t threads, void** arguments,
                                              Memory& memory) {
  return bind_ranges(threads, arguments, memory, [](std::byte old) { return old; });
}

constexpr std::array<Kernel, 5> kKernels{{
    {"add", bind_add},
    {"fill", bind_fill},
    {"copy", bind_copy},
    {"fletching_invert", bind_invert},
    {"fletching_copy", bind_copy_bytes},
}};

const Kernel* built_in(std::string_view name) {
  const auto* found = std::ranges::find(kKernels, name, &Kernel::name);
  return found == kKernels.end() ? nullptr : found;
}

bool begins_with(const char* text, std::string_view beginning) {
  return std::strncmp(text, beginning.data(), beginning.size()) == 0;
}

// Whether the image is a cubin, a fatbin, a bundle of hipcc or PTX.
bool for_a_real_device(const char* image) {
  constexpr std::string_view kBeginnings[] = {"\177ELF", "\x50\xed\x55\xba",
                                              "__CLANG_OFFLOAD_BUNDLE__", "//", ".version"};
  return std::ranges::any_of(kBeginnings, [&](auto each) { return begins_with(image, each); });
}

}  // namespace

std::shared_ptr<Module> load_image(const void* image, std::shared_ptr<Context> context) {
  require(image != nullptr, Status::kInvalidValue);
  const char* text = static_cast<const char*>(image);
  require(!for_a_real_device(text), Status::kNoBinaryForGpu);
  require(begins_with(text, kHeading), Status::kInvalidImage);
  auto module = std::make_shared<Module>();
  module->context = std::move(context);
  std::string_view rest(text + kHeading.size());
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    constexpr std::string_view kKeyword = "kernel ";
    require(line.starts_with(kKeyword), Status::kInvalidImage);
    const Kernel* kernel = built_in(line.substr(kKeyword.size()));
    require(kernel != nullptr, Status::kInvalidImage);
    module->kernels.push_back(kernel);
  }
  return module;
}

const Kernel* find_kernel(const Module& module, std::string_view name) {
  const auto found =
      std::ranges::find_if(module.kernels, [&](const Kernel* each) { return each->name == name; });
  return found == module.kernels.end() ? nullptr : *found;
}

std::uint64_t threads_of(const std::array<unsigned int, 3>& grid,
                         const std::array<unsigned int, 3>& block) {
  constexpr std::uint64_t kLargestBlock = 1024;
  const std::uint64_t per_block = std::uint64_t{block[0]} * block[1] * block[2];
  require(per_block > 0 && per_block <= kLargestBlock, Status::kInvalidValue);
  require(grid[0] <= 0x7FFFFFFF && grid[1] <= 0xFFFF && grid[2] <= 0xFFFF, Status::kInvalidValue);
  const std::uint64_t blocks = std::uint64_t{grid[0]} * grid[1] * grid[2];
  require(blocks > 0, Status::kInvalidValue);
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  return blocks > kMost / per_block ? kMost : blocks * per_block;
}

std::function<void(Context&)> launch(const Kernel& kernel, std::uint64_t threads, void** arguments,
                                     Memory& memory) {
  return kernel.bind(threads, arguments, memory);
}

}  // namespace fletching::standin
