#include <stdint.h>

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kCpu = 1,
  kGpu,
  kNext = kGpu + 15,
} DeviceKind;

enum Negative { kMinus = -1, kZero };

enum { kNameless = 3 };

enum Wide { kHuge = 0xFFFFFFFFFFFFFFFF };

typedef enum Tagged { kTagged } TaggedAlias;

struct UsesEnums {
  DeviceKind kind;
  enum Negative negative;
  TaggedAlias tagged;
};

#ifdef __cplusplus
enum class Scoped : uint8_t { kOne = 1 };
#endif
