/* Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_HANDLER_H
#define FLETCHING_TESTS_HOSTILE_HANDLER_H

/* Completes the handlers' open work: extracts kept tasks, and cancels for an idle handler. */
void FinishHandlers(void);

#endif /* FLETCHING_TESTS_HOSTILE_HANDLER_H */
