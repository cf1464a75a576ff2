/* Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_TENSOR_H
#define FLETCHING_TESTS_HOSTILE_TENSOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Frees the memory of deleted tensors. */
void FinishTensors(void);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TESTS_HOSTILE_TENSOR_H */
