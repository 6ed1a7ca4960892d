/* felloe/dlpack.h: DLTensor, the stable C structure by which array libraries share tensors (DLPack, ABI version 1). Declared here so that
 * the library builds alone; when DLPack's own header was included first, its declarations are used. */
#ifndef FELLOE_DLPACK_H
#define FELLOE_DLPACK_H

#ifndef DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13 } DLDeviceType;

typedef struct {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;

typedef enum {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6
} DLDataTypeCode;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: compact, last index fastest */
    uint64_t byte_offset;
} DLTensor;

#ifdef __cplusplus
}
#endif

#endif
#endif
