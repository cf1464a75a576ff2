// A fake vendor library with one function, built under several names.
#ifdef _WIN32
__declspec(dllexport)
#endif
int fletching_test_number(void) {
  return FLETCHING_TEST_NUMBER;
}
