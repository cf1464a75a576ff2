/* The cases of the async producers. Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_PRODUCER_CASES_H
#define FLETCHING_TESTS_HOSTILE_PRODUCER_CASES_H

enum {
  kGood,
  kEmpty,
  kFreshThreads,
  kFreed,
  kMetadata,
  kAdditionalMetadataNegative,
  kTaskMetadataNegative,
  kErrorMetadataNegative,
  kRequestNull,
  kCancelNull,
  kProducerNull,
  kSchemaNull,
  kSchemaReleased,
  kSchemaTwice,
  kSchemaLate,
  kEndFirst,
  kErrorFirst,
  kReleaseFirst,
  kTasksUnasked,
  kTaskAfterEnd,
  kTaskAfterError,
  kEndAfterError,
  kEndTwice,
  kErrorAfterEnd,
  kErrorTwice,
  kErrorMidway,
  kErrorZero,
  kErrorNegative,
  kErrorTextNull,
  kErrorTextNotUtf8,
  kErrorTextLong,
  kReleaseWithoutEnd,
  kReleaseWithTasks,
  kExtractNull,
  kExtractFails,
  kExtractNegative,
  kExtractPartial,
  kExtractReleased,
  kExtractUnknownDevice,
  kExtractReserved,
  kReentrantRequest,
  kOverlappingRequest,
  kReentrantCancel,
  kStalls,
  kTaskAfterCancel,
  kIgnoresCancel
};

/* S schema; T a task, once it is asked for; t a task at once; E end; X error; C waits for cancel;
 * R release, once every task is extracted; r release at once. */
extern const char* const kProducerScripts[];

#endif /* FLETCHING_TESTS_HOSTILE_PRODUCER_CASES_H */
