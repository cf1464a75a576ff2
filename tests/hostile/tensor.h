/* Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_TENSOR_H
#define FLETCHING_TESTS_HOSTILE_TENSOR_H

/* The memory of deleted tensors is given back. */
void FinishTensors(void);

#endif /* FLETCHING_TESTS_HOSTILE_TENSOR_H */
