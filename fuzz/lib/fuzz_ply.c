/* Any bytes as a ply file. */
#include "asset_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return check_reader(FEL_ASSET_PLY, data, size);
}
