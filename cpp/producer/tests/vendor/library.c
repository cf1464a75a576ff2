// A vendor's library with one function, built under more than one name.
#ifdef _WIN32
__declspec(dllexport)
#endif
int fletching_test_number(void) {
  return FLETCHING_TEST_NUMBER;
}
