#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Forward;
struct Later;

typedef int32_t Number;
typedef void (*Hook)(struct Forward* self, int64_t n);

typedef struct {
  Number number;
} Nameless;

struct Scalars {
  int8_t i8;
  unsigned char u8;
  short i16;
  uint16_t u16;
  int plain;
  unsigned plain_unsigned;
  int32_t i32;
  long i_long;
  unsigned long long u64;
  char letter;
  bool flag;
  float f32;
  double f64;
  size_t size;
  intptr_t address;
  Number number;
  volatile int changing;
};

struct Pointers {
  const char* text;
  const void** buffers;
  void* const* fixed;
  char* __restrict alone;
  struct Later** later;
  struct Forward* forward;
  int64_t (*to_array)[3];
  Nameless* nameless;
};

struct Callbacks {
  int (*get)(struct Callbacks* self, struct Later* out, ...);
  void (*plain)(void);
  void (*table[2])(int code);
  Hook hook;
  Hook (*returns_hook)(const char* name);
};

struct Later {
  int64_t reserved[3];
  int32_t grid[2][3];
  const uint8_t bytes[4];
};

struct Members {
  struct {
    int inner;
  } named;
  union {
    int x;
    float y;
  };
  struct Inside {
    int z;
  } inside;
};

struct Bits {
  unsigned low : 3;
  unsigned high : 7;
  unsigned : 0;
  unsigned next : 1;
};

struct __attribute__((packed)) Packed {
  char c;
  int64_t v;
};

#pragma pack(push, 2)
struct PragmaPacked {
  char c;
  int64_t v;
};
#pragma pack(pop)

#pragma pack(push, 16)
struct NotReallyPacked {
  char c;
  int64_t v;
};
#pragma pack(pop)

struct __attribute__((aligned(32))) Aligned {
  char c;
};

struct Flexible {
  int count;
  int64_t items[];
};

union Either {
  int64_t number;
  char text[12];
};

// Said before; one entry each.
struct Forward;
typedef int32_t Number;
