// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "face.hpp"
#include "mode.hpp"

namespace fletching::standin {
namespace {

constexpr int kMostDevices = 64;

int devices_wanted() {
  const char* text = std::getenv("FLETCHING_STANDIN_DEVICES");
  if (text == nullptr) return 2;
  const std::string_view digits(text);
  int count = -1;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || *rest != '\0' || count < 0 || count > kMostDevices) {
    refuse("FLETCHING_STANDIN_DEVICES", digits, "a number from 0 to 64");
  }
  return count;
}

std::shared_ptr<Context> context_of(const Object& object) {
  struct Visitor {
    std::shared_ptr<Context> operator()(const std::shared_ptr<Context>&) const { return nullptr; }
    std::shared_ptr<Context> operator()(const std::shared_ptr<Stream>& each) const {
      return each->context();
    }
    std::shared_ptr<Context> operator()(const std::shared_ptr<Event>& each) const {
      return each->context;
    }
    std::shared_ptr<Context> operator()(const std::shared_ptr<Module>& each) const {
      return each->context;
    }
    std::shared_ptr<Context> operator()(const std::shared_ptr<Function>& each) const {
      const auto module = each->module.lock();
      return module ? module->context : nullptr;
    }
    std::shared_ptr<Context> operator()(const std::shared_ptr<Graph>&) const { return nullptr; }
    std::shared_ptr<Context> operator()(const std::shared_ptr<GraphExec>&) const { return nullptr; }
  };
  return std::visit(Visitor{}, object);
}

}  // namespace

Engine& engine() {
  static auto* instance = new Engine;
  return *instance;
}

// Objects released during process exit still call this after the thread's own objects are
// destroyed.
std::vector<std::shared_ptr<Context>>& current_contexts() {
  using Contexts = std::vector<std::shared_ptr<Context>>;
  static thread_local bool over = false;
  struct ThreadContexts {
    Contexts contexts;
    ThreadContexts() = default;
    ThreadContexts(const ThreadContexts&) = delete;
    ThreadContexts& operator=(const ThreadContexts&) = delete;
    ~ThreadContexts() { over = true; }
  };
  static thread_local ThreadContexts of_thread;
  if (!over) return of_thread.contexts;
  static thread_local auto* late = new Contexts;
  return *late;
}

std::string device_name(int device) {
  return "Fletching stand-in (no GPU) " + std::to_string(device);
}

Engine::Engine() : devices_(static_cast<std::size_t>(devices_wanted())) {
  add_environment_faults();
}

// FLETCHING_FAULT may name functions of several runtimes; each stand-in uses the names with its
// prefix.
void Engine::add_environment_faults() {
  const char* text = std::getenv("FLETCHING_FAULT");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::string_view fault = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), fault.size() + 1));
    if (fault.starts_with(face::kPrefix) && !faults.add(fault)) {
      refuse("FLETCHING_FAULT", fault, "function:n:error, where n may be *, of this library");
    }
  }
}

void Engine::check_device(int device) const {
  require(device >= 0 && device < device_count(), Status::kInvalidDevice);
}

bool Engine::primary_active(int device) {
  check_device(device);
  const std::lock_guard lock(mutex_);
  return devices_[static_cast<std::size_t>(device)].primary != nullptr;
}

std::shared_ptr<Context> Engine::retain_primary(int device, bool counted) {
  check_device(device);
  const std::lock_guard lock(mutex_);
  Device& entry = devices_[static_cast<std::size_t>(device)];
  if (entry.lost != Status::kSuccess) fail(entry.lost);
  if (!entry.primary) {
    entry.primary = std::make_shared<Context>(device, true);
    if (entry.handle == nullptr) {
      entry.handle = handles.add(entry.primary);
    } else {
      handles.add_again(entry.handle, entry.primary);
    }
  }
  if (counted) ++entry.references;
  return entry.primary;
}

void Engine::release_primary(int device) {
  check_device(device);
  std::shared_ptr<Context> ended;
  {
    const std::lock_guard lock(mutex_);
    Device& entry = devices_[static_cast<std::size_t>(device)];
    require(entry.references > 0, Status::kInvalidContext);
    if (--entry.references == 0) ended = std::exchange(entry.primary, nullptr);
  }
  if (ended) end(ended);
}

void Engine::reset_primary(int device) {
  check_device(device);
  std::shared_ptr<Context> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::exchange(devices_[static_cast<std::size_t>(device)].primary, nullptr);
  }
  if (ended) end(ended);
}

std::vector<std::shared_ptr<Context>> Engine::contexts_of(int device) {
  std::vector<std::shared_ptr<Context>> found;
  handles.each([&](const void*, const Object& object) {
    const auto* each = std::get_if<std::shared_ptr<Context>>(&object);
    if (each && (*each)->device() == device) found.push_back(*each);
  });
  return found;
}

void Engine::lose_device(int device, int error) {
  check_device(device);
  require(error != 0, Status::kInvalidValue);
  const auto status = static_cast<Status>(error);
  {
    const std::lock_guard lock(mutex_);
    devices_[static_cast<std::size_t>(device)].lost = status;
  }
  for (const auto& each : contexts_of(device)) each->break_with(status);
}

void Engine::restore_device(int device) {
  check_device(device);
  std::shared_ptr<Context> ended;  // the broken primary context, if it has no references
  {
    const std::lock_guard lock(mutex_);
    Device& entry = devices_[static_cast<std::size_t>(device)];
    entry.lost = Status::kSuccess;
    if (entry.references == 0) ended = std::exchange(entry.primary, nullptr);
  }
  if (ended) end(ended);
}

void* Engine::handle_of(const std::shared_ptr<Context>& context) {
  const void* found = nullptr;
  handles.each([&](const void* handle, const Object& object) {
    const auto* each = std::get_if<std::shared_ptr<Context>>(&object);
    if (each && *each == context) found = handle;
  });
  return const_cast<void*>(found);
}

std::shared_ptr<Context> Engine::context(const void* handle) {
  auto found = handles.find<Context>(handle);
  require(found != nullptr, Status::kInvalidContext);
  return found;
}

void* Engine::create_context(int device) {
  check_device(device);
  {
    const std::lock_guard lock(mutex_);
    const Status lost = devices_[static_cast<std::size_t>(device)].lost;
    require(lost == Status::kSuccess, lost);
  }
  return handles.add(std::make_shared<Context>(device, false));
}

void Engine::destroy_context(const void* handle) {
  const std::shared_ptr<Context> ended = context(handle);
  require(!ended->primary(), Status::kInvalidContext);
  end(ended);
}

// Destroys the remaining objects of the context with it.
void Engine::end(const std::shared_ptr<Context>& context) {
  captures.drop(*context);
  context->destroy();
  std::size_t left = handles.drop([&](const Object& object) {
    return !std::holds_alternative<std::shared_ptr<Function>>(object) &&
           context_of(object) == context;
  });
  left += memory.drop(*context);
  handles.drop([&](const Object& object) {
    const auto* each = std::get_if<std::shared_ptr<Context>>(&object);
    return each && *each == context;
  });
  const std::lock_guard lock(mutex_);
  abandoned_ += static_cast<std::int64_t>(left);
}

FletchingStandinCounts Engine::counts() {
  FletchingStandinCounts counts{};
  handles.each([&](const void*, const Object& object) {
    if (const auto* each = std::get_if<std::shared_ptr<Context>>(&object)) {
      counts.contexts += (*each)->primary() ? 0 : 1;
    }
    counts.streams += std::holds_alternative<std::shared_ptr<Stream>>(object) ? 1 : 0;
    counts.events += std::holds_alternative<std::shared_ptr<Event>>(object) ? 1 : 0;
    counts.modules += std::holds_alternative<std::shared_ptr<Module>>(object) ? 1 : 0;
    counts.graphs += std::holds_alternative<std::shared_ptr<Graph>>(object) ||
                             std::holds_alternative<std::shared_ptr<GraphExec>>(object)
                         ? 1
                         : 0;
  });
  for (const auto& each : memory.all()) {
    const bool is_device = each->kind == MemoryKind::kDevice || each->kind == MemoryKind::kSignal;
    counts.device_memory += is_device ? 1 : 0;
    counts.host_memory += each->kind == MemoryKind::kHost ? 1 : 0;
    counts.managed_memory += each->kind == MemoryKind::kManaged ? 1 : 0;
  }
  const std::lock_guard lock(mutex_);
  for (const Device& each : devices_) counts.primary_references += each.references;
  counts.abandoned = abandoned_;
  return counts;
}

}  // namespace fletching::standin
