/* Cases of the async consumers. Internal to the hostile peer. */
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
  /* The request is invalid: the producer must call on_error with EINVAL. */
  kRequestZero,
  kRequestNegative,
  kRequestMin,
  kCallsInError,
  /* The stream stops before its end. */
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
