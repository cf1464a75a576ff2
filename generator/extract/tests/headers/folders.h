#include <errno.h>
#include <system_part.h>
#include <user_part.h>

#define FROM_SYSTEM SYSTEM_VALUE
#define FROM_ERRNO ENOMEM

struct Both {
  struct SystemPart system;
  struct UserPart user;
};
