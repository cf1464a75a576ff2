// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "errors.hpp"

namespace fletching::standin {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const std::from_chars_result read = std::from_chars(begin, end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

// Removes the text up to the separator from the front and returns it.
std::string_view take_until(char separator, std::string_view& text) {
  const std::string_view front = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), front.size() + 1));
  return front;
}

// Whether this library exports the function, with or without a version suffix.
bool exported(const std::string& function) {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&exported), &self) == 0) return false;
  void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return true;  // linked into a program, so there is no library to query
  bool found = false;
  for (const char* suffix : {"", "_v2", "_v4"}) {
    found = found || dlsym(library, (function + suffix).c_str()) != nullptr;
  }
  dlclose(library);
  return found;
}

}  // namespace

std::string_view plain_name(std::string_view symbol) {
  for (const std::string_view suffix : {"_ptsz", "_ptds", "_spt", "_v2", "_v4"}) {
    if (symbol.ends_with(suffix)) symbol.remove_suffix(suffix.size());
  }
  return symbol;
}

std::optional<int> Faults::count(std::string_view function) {
  function = plain_name(function);
  const std::lock_guard lock(mutex_);
  const auto [entry, fresh] = calls_.try_emplace(std::string(function), 0);
  ++entry->second;
  std::optional<int> error;
  for (Fault& fault : faults_) {
    if (fault.function != function) continue;
    if (fault.every || --fault.left == 0) error = error.value_or(fault.error);
  }
  std::erase_if(faults_, [](const Fault& fault) { return !fault.every && fault.left == 0; });
  return error;
}

std::optional<Faults::Fault> Faults::parse(std::string_view text) {
  Fault fault{};
  fault.function = plain_name(take_until(':', text));
  const std::string_view when = take_until(':', text);
  fault.every = when == "*";
  fault.left = fault.every ? 1 : number(when).value_or(0);
  const face::Error* named = find_error(text);
  fault.error = named != nullptr ? named->number : static_cast<int>(number(text).value_or(0));
  if (fault.left <= 0 || fault.error == 0 || !exported(fault.function)) return std::nullopt;
  return fault;
}

bool Faults::add(std::string_view text) {
  std::vector<Fault> added;
  while (!text.empty()) {
    auto fault = parse(take_until(',', text));
    if (!fault) return false;
    added.push_back(std::move(*fault));
  }
  const std::lock_guard lock(mutex_);
  for (Fault& fault : added) faults_.push_back(std::move(fault));
  return !added.empty();
}

void Faults::reset() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

std::int64_t Faults::calls(std::string_view function) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(plain_name(function));
  return found == calls_.end() ? 0 : found->second;
}

std::map<std::string, std::int64_t, std::less<>> Faults::all_calls() {
  const std::lock_guard lock(mutex_);
  return calls_;
}

}  // namespace fletching::standin
