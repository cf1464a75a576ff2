// The only function of glibc 2.36 in LLVM's and libstdc++'s archives. With this definition the
// wheel's program runs on glibc 2.34.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}
