#include <stdint.h>

#define PLAIN 1
#define SUM (PLAIN + 2 * 3)
#define SIGNED_ -2147483648
#define UNSIGNED_ ~0U
#define HEX 0x80000000
#define SHIFTED (1UL << 2UL)
#define WIDE 0xFFFFFFFFFFFFFFFF
#define WRAPPED INT64_C(4)
#define CAST ((int32_t)0xFFFFFFFF)
#define NARROW ((unsigned char)257)
#define CHOICE (PLAIN == 1 ? 10 : 20)
#define LETTER 'a'
#define FROM_ENUM kLaterInTheFile
#define ITSELF ITSELF
#define ALIAS SUM /* a comment */
// clang-format off
#define SPLIT \
  7
// clang-format on
#define TEXT "seven"
#define REAL 1.5
#define NOTHING
#define BY_ZERO (1 / 0)
#define UNKNOWN some_function(1)
#define CALL(x) (x + 1)
#define CALLED CALL(41)
#define SHORT_LIVED 1
#define WAS_SHORT_LIVED SHORT_LIVED
#undef SHORT_LIVED
#define TWICE 1
#undef TWICE
#define TWICE 2
#define NEGATED_HEX -0x80000000
#define UNFINISHED CALL(
#define NEVER_RUN _Pragma("clang __debug crash")

enum { kLaterInTheFile = 17, ITSELF = 9 };
