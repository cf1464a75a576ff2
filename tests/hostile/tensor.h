/* Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_TENSOR_H
#define FLETCHING_TESTS_HOSTILE_TENSOR_H

/* Frees the memory of deleted tensors. */
void FinishTensors(void);

#endif /* FLETCHING_TESTS_HOSTILE_TENSOR_H */
