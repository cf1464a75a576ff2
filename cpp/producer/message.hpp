// Errors inside the producer, and the one place where they become an errno and a line of text.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "producer.h"

namespace fletching::producer {

// Thrown inside the library only; Guarded() turns it into the return value of a C function.
struct Error {
  int code;
  std::string text;
};

[[noreturn]] inline void Fail(int code, std::string text) { throw Error{code, std::move(text)}; }

// Writes one line of valid UTF-8: a byte that is not becomes U+FFFD, a control character a space,
// and what does not fit is cut at a character boundary. Allocates nothing. `message` may be NULL.
void WriteMessage(FletchingMessage* message, std::string_view text) noexcept;

// The beginning of a text from foreign code, not yet made valid UTF-8. NULL gives "(NULL)".
std::string ForeignText(const char* text);

bool IsUtf8(std::string_view text) noexcept;

// Runs `work` and returns 0 with an empty message, or the errno of whatever was thrown with its
// text.
template <class Work>
int Guarded(FletchingMessage* message, Work work) noexcept {
  WriteMessage(message, "");
  try {
    work();
    return 0;
  } catch (const Error& error) {
    WriteMessage(message, error.text);
    return error.code;
  } catch (const std::bad_alloc&) {
    WriteMessage(message, "out of memory");
    return ENOMEM;
  } catch (const std::exception& error) {
    WriteMessage(message, error.what());
    return EIO;
  } catch (...) {
    WriteMessage(message, "unknown exception");
    return EIO;
  }
}

}  // namespace fletching::producer
