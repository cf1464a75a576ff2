/* The cases of the async consumers. Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_HANDLER_CASES_H
#define FLETCHING_TESTS_HOSTILE_HANDLER_CASES_H

enum {
  kGood,
  kRequestMany,
  kRequestStorm,
  kExtractLate,
  kExtractTwice,
  kExtractNothing,
  kExtractElsewhere,
  kExtractAllAtOnce,
  /* The request was invalid: on_error has to be called with EINVAL. */
  kRequestZero,
  kRequestNegative,
  kRequestMin,
  kCallsInError,
  /* The stream is over before its end. */
  kNeverAsks,
  kCancelInSchema,
  kCancelInTask,
  kCancelStorm,
  kRequestAfterCancel,
  kCancelInRelease,
  kSchemaRefused,
  kSchemaRefusedTaken,
  kSchemaRefusedNegative,
  kTaskRefused,
  kTaskRefusedNegative,
  kEndRefused,
  kOnSchemaNull,
  kOnTaskNull,
  kOnErrorNull,
  kReleaseNull
};

#endif /* FLETCHING_TESTS_HOSTILE_HANDLER_CASES_H */
