/* Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_HANDLER_H
#define FLETCHING_TESTS_HOSTILE_HANDLER_H

/* What handlers still wait for is done: kept tasks are extracted, and an idle one cancels. */
void FinishHandlers(void);

#endif /* FLETCHING_TESTS_HOSTILE_HANDLER_H */
