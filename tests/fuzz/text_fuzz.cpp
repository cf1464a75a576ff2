// SPDX-License-Identifier: Apache-2.0
//
// Foreign strings: the printable form is UTF-8 without NULs, has a bounded length, and does not
// change when it is made printable again.
#include "fletching/detail/text.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fletching::fuzz::require;
  namespace detail = fletching::detail;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string made = detail::printable(text);
  require(made.size() <= 4 * detail::kMaxText + 3, "the length is bounded");
  require(made.find('\0') == std::string::npos, "there are no NULs");
  for (std::string_view left = made; !left.empty();) {
    const std::size_t length = detail::utf8_length(left);
    require(length > 0, "it is UTF-8");
    left.remove_prefix(length);
  }
  if (made.size() <= detail::kMaxText) {
    require(detail::printable(std::string_view(made)) == made, "it stays as it is");
  }
  const std::string terminated(text);
  const std::string_view to_its_nul = text.substr(0, text.find('\0'));
  require(detail::printable(terminated.c_str()) == detail::printable(to_its_nul),
          "a text of C reads to its NUL");
  return 0;
}
