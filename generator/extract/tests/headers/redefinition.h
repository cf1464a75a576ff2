struct Twice {
  int a;
};

struct Twice {
  char b;
};
