// The error of a check, converted to an errno value and a message.
#ifndef FLETCHING_TESTS_GPU_TEXT_HPP
#define FLETCHING_TESTS_GPU_TEXT_HPP

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "fletching/detail/text.hpp"

namespace fletching::gpu {

/// Thrown inside this program and library only; guarded() catches it at every entry from C.
struct Error {
  int code;
  std::string text;
};

[[noreturn]] inline void fail(int code, std::string text) { throw Error{code, std::move(text)}; }

using detail::printable;

/// Runs `work` and returns 0, or the errno value of its exception, and stores the exception's text
/// in `message`.
template <typename Work>
int guarded(std::string& message, const Work& work) noexcept {
  // The assigned strings are short enough not to allocate.
  try {
    work();
    return 0;
  } catch (Error& error) {
    message = std::move(error.text);
    return error.code;
  } catch (const std::bad_alloc&) {
    message = "out of memory";
    return ENOMEM;
  } catch (...) {
    message = "C++ exception";
    return EIO;
  }
}

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_TEXT_HPP
