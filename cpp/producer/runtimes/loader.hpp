// Loads the library of a vendor's runtime on first use and looks up its functions. Used by the
// producer and by tests; the library's own loader is cpp/core/vendor_library.h.
#ifndef FLETCHING_PRODUCER_RUNTIMES_LOADER_HPP
#define FLETCHING_PRODUCER_RUNTIMES_LOADER_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>

#include "fletching/result.hpp"

#if defined(_WIN32)
// As declared in <windows.h>, which is not included because it defines thousands of macros.
struct HINSTANCE__;
extern "C" {
__declspec(dllimport) HINSTANCE__* __stdcall LoadLibraryA(const char* name);
__declspec(dllimport) int __stdcall GetModuleHandleExA(unsigned long flags, const char* name,
                                                       HINSTANCE__** module);
using FletchingFarProc = std::intptr_t(__stdcall*)();
__declspec(dllimport) FletchingFarProc __stdcall GetProcAddress(HINSTANCE__*, const char* symbol);
__declspec(dllimport) unsigned long __stdcall GetLastError();
}
#else
#include <dlfcn.h>
#endif

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The result of an event query.
enum class EventState : std::uint8_t { kDone, kPending, kFailed };

/// Any function pointer, to be cast to its actual type.
using AnyFunction = void (*)();

/// A pointer to a C function.
template <class Signature>
using CFunction = Signature*;

template <class Signature>
struct Stdcall;
template <class Return, class... Arguments>
struct Stdcall<Return(Arguments...)> {
#if defined(_WIN32) && !defined(_WIN64)
  using type = Return(__stdcall*)(Arguments...);
#else
  using type = Return (*)(Arguments...);
#endif
};

/// A pointer to a function that is stdcall on 32-bit Windows and a C function elsewhere.
template <class Signature>
using StdcallFunction = typename Stdcall<Signature>::type;

/// A handle with 64 bits on every target: a pointer where pointers have 64 bits.
template <class Opaque>
using Handle64 = std::conditional_t<sizeof(void*) == 8, Opaque*, std::uint64_t>;

/// One function of a vendor's library.
struct VendorFunction {
  const char* name;        ///< in source code, "cuCtxPushCurrent"
  const char* symbol;      ///< exported by the library, "cuCtxPushCurrent_v2"
  const char* per_thread;  ///< the symbol whose NULL is the per-thread stream; or nullptr
  const char* optional;    ///< the version that added it, if some libraries lack it; or nullptr
  std::size_t offset;      ///< the pointer's offset in the runtime's struct Functions
};

/// A vendor's runtime: the names of its library and its functions.
struct VendorRuntime {
  const char* name;                        ///< "cuda"
  const char* title;                       ///< "CUDA driver API"
  std::span<const char* const> libraries;  ///< in the order of preference
  std::span<const VendorFunction> functions;
};

struct Library {
  void* handle;
  const char* name;
};

#if defined(_WIN32)

inline void* open_library(const char* name, bool already_there) noexcept {
  HINSTANCE__* module = nullptr;
  if (already_there) return GetModuleHandleExA(0, name, &module) != 0 ? module : nullptr;
  return LoadLibraryA(name);
}

inline std::string library_error(const char* name) {
  return std::string(name) + ": error " + std::to_string(GetLastError()) + " of Windows";
}

inline AnyFunction find_symbol(void* library, const char* symbol) noexcept {
  return reinterpret_cast<AnyFunction>(GetProcAddress(static_cast<HINSTANCE__*>(library), symbol));
}

#else

inline void* open_library(const char* name, bool already_there) noexcept {
  // A library that is already loaded keeps its visibility.
  return already_there ? ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD)
                       : ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

inline std::string library_error(const char* name) {
  const char* text = ::dlerror();  // begins with the name
  return text != nullptr ? text : std::string(name) + ": failed without a message";
}

inline AnyFunction find_symbol(void* library, const char* symbol) noexcept {
  return reinterpret_cast<AnyFunction>(::dlsym(library, symbol));
}

#endif

/// Loads the first library that works. A library that is already loaded is preferred, whatever its
/// name: handles of one version are invalid in another. It is never closed.
inline Result<Library> find_library(const VendorRuntime& runtime) noexcept {
  return detail::guarded([&]() -> Result<Library> {
    std::string names;
    std::string reasons;
    for (const bool already_there : {true, false}) {
      for (const char* name : runtime.libraries) {
        if (void* handle = open_library(name, already_there)) return Library{handle, name};
        if (already_there) continue;
        reasons += (reasons.empty() ? "" : "; ") + library_error(name);
        names += (names.empty() ? "" : ", ") + std::string(name);
      }
    }
    const std::string title = runtime.title;
    if (names.empty()) return Error{ENOENT, title + ": no library for this system"};
    return Error{ENOENT, title + ": cannot load " + names +
                             "; hint: install it, or add its folder to the library search path (" +
                             reasons + ")"};
  });
}

/// Fills the struct Functions of the runtime. A missing function is set to nullptr and is an error
/// unless it is optional.
inline Status find_functions(const VendorRuntime& runtime, const Library& library,
                             void* functions) noexcept {
  return detail::guarded([&]() -> Status {
    for (const VendorFunction& function : runtime.functions) {
      AnyFunction found = find_symbol(library.handle, function.symbol);
      std::memcpy(static_cast<char*>(functions) + function.offset, &found, sizeof found);
      if (found != nullptr || function.optional != nullptr) continue;
      return Error{ENOSYS, std::string(runtime.title) + ": " + library.name + " has no " +
                               function.symbol + "; hint: install a newer version"};
    }
    return {};
  });
}

template <class Functions>
struct LoadedRuntime {
  static_assert(std::is_standard_layout_v<Functions>);

  Functions functions{};
  Library library{};
};

/// Loads the library and keeps it, once per shared library that contains this code.
///
/// A failure is retried by the next call: the library may have been loaded or installed since.
template <class Functions>
Result<const LoadedRuntime<Functions>*> loaded_runtime(const VendorRuntime& runtime) noexcept {
  static std::mutex mutex;
  static std::atomic<const LoadedRuntime<Functions>*> ready{nullptr};
  static LoadedRuntime<Functions> loaded;

  if (const auto* found = ready.load(std::memory_order_acquire)) return found;
  return detail::guarded([&]() -> Result<const LoadedRuntime<Functions>*> {
    const std::scoped_lock lock(mutex);
    if (const auto* found = ready.load(std::memory_order_relaxed)) return found;
    loaded = {};
    Result<Library> library = find_library(runtime);
    if (!library) return std::move(library).error();
    loaded.library = *library;
    Status status = find_functions(runtime, *library, &loaded.functions);
    if (!status) return std::move(status).error();
    ready.store(&loaded, std::memory_order_release);
    return &loaded;
  });
}

template <class Functions>
Result<const Functions*> loaded_functions(const VendorRuntime& runtime) noexcept {
  auto loaded = loaded_runtime<Functions>(runtime);
  if (!loaded) return std::move(loaded).error();
  return &(*loaded)->functions;
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_PRODUCER_RUNTIMES_LOADER_HPP
