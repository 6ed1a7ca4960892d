/* Any bytes as a stl file. */
#include "asset_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return check_reader(FEL_ASSET_STL, data, size);
}
