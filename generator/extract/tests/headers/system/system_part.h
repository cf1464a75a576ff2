#define SYSTEM_VALUE 1
struct SystemPart {
  int a;
};
