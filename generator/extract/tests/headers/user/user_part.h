#define USER_VALUE 2
struct UserPart {
  int a;
};
