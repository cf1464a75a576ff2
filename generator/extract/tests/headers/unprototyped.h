struct Old {
  void (*release)();
};
