#!/bin/sh
# exports.sh CC LIBRARY INCLUDE: the shared library exports what the public headers mark with FEL_API, all of it and nothing else; and it
# needs libc and its kin only (besides a sanitizer's run time).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for header in "$3"/felloe/*.h; do
    echo "#include <felloe/$(basename "$header")>"
done > "$work/all.c"
"$1" -E -P -I"$3" "$work/all.c" | tr '\n' ' ' | tr ';' '\n' | grep 'visibility("default")' |
    sed 's/.*visibility("default")))//' | grep -o 'fel_[a-z0-9_]*(' | tr -d '(' | sort -u > "$work/declared"
nm -D --defined-only "$2" | awk '{print $3}' | sort -u > "$work/exported"
test "$(wc -l < "$work/declared")" -gt 10
diff "$work/declared" "$work/exported"
needed=$(objdump -p "$2" | awk '/NEEDED/ {print $2}' | grep -Ev '^(libc|libm|libpthread|libdl|ld-linux-x86-64|libasan|libubsan|libtsan|libgcc_s|libclang_rt.*)\.so' || true)
[ -z "$needed" ] || { echo "needs more than libc, libm, libpthread, libdl: $needed"; exit 1; }
