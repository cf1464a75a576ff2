struct Hooks {
  void(__attribute__((stdcall)) * special)(int);
  void (*ordinary)(int);
};
