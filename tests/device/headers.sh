#!/bin/sh
# headers.sh CC CXX INCLUDE: each public header compiles alone, as C11, C17 and C++17, and after DLPack's own header.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -pedantic -Werror -fsyntax-only"
for header in "$3"/felloe/*.h; do
    name=$(basename "$header")
    echo "#include <felloe/$name>
extern int used; int used;" > "$work/alone.c"
    for standard in c11 c17; do
        "$1" -std=$standard $flags -I"$3" "$work/alone.c" || { echo "$name fails as $standard"; exit 1; }
    done
    if [ -n "$2" ]; then
        cp "$work/alone.c" "$work/alone.cc"
        "$2" -std=c++17 $(echo "$flags" | sed 's/-Wstrict-prototypes//') -I"$3" "$work/alone.cc" || { echo "$name fails as C++17"; exit 1; }
    fi
done
# With DLPack's guard defined, none of its types may be declared again.
echo "#define DLPACK_DLPACK_H_
#include <felloe/dlpack.h>
typedef int DLTensor; typedef int DLDevice; typedef int DLDataType; typedef int DLDeviceType;
extern DLTensor used; DLTensor used;" > "$work/other.c"
"$1" -std=c11 $flags -I"$3" "$work/other.c"
