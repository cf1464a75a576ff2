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
  /* What was asked for was wrong: on_error has to tell EINVAL. */
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
