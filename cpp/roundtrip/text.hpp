// Texts from foreign code, and the error that becomes an errno and a text where C calls us.
#ifndef FLETCHING_TESTS_ROUNDTRIP_TEXT_HPP
#define FLETCHING_TESTS_ROUNDTRIP_TEXT_HPP

#include <cerrno>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace fletching::roundtrip {

/// Thrown inside this program and library only; guarded() catches it at every entry from C.
struct Error {
  int code;
  std::string text;
};

[[noreturn]] inline void fail(int code, std::string text) { throw Error{code, std::move(text)}; }

/// One line of valid UTF-8: a byte that is not becomes U+FFFD, a control character a space.
std::string printable(std::string_view text);

/// The same of a foreign text, which may be NULL: "(NULL)".
std::string printable(const char* text);

/// Copies `text` to `buffer`, NUL-terminated, cut at a character boundary when it is too long.
void write_message(std::string_view text, char* buffer, std::size_t capacity) noexcept;

/// Runs `work` and returns 0, or the errno of what was thrown, with its text in `message`.
template <typename Work>
int guarded(std::string& message, const Work& work) noexcept {
  // The texts that are assigned are short enough to need no memory.
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

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_TEXT_HPP
