#!/bin/sh
# The shared library exports the public names and nothing else, needs libc and its kin only, and each public header compiles alone:
# exports.sh LIBRARY INCLUDE
set -eu
extra=$(nm -D --defined-only "$1" | awk '{print $3}' | grep -v '^fel_' || true)
[ -z "$extra" ] || { echo "exported beside fel_*: $extra"; exit 1; }
needed=$(objdump -p "$1" | awk '/NEEDED/ {print $2}' | grep -Ev '^(libc|libm|libpthread|libdl|ld-linux-x86-64|libasan|libubsan|libtsan|libgcc_s|libclang_rt.*)\.so' || true)
[ -z "$needed" ] || { echo "needs more than libc, libm, libpthread, libdl: $needed"; exit 1; }
for header in "$2"/felloe/*.h; do
  name=felloe/$(basename "$header")
  for language in "c -std=c11" "c -std=c17" "c++ -std=c++17"; do
    command -v c++ >/dev/null || [ "${language#c++}" = "$language" ] || continue
    echo "#include <$name>" | cc -x $language -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$2" - || { echo "$name does not compile as $language"; exit 1; }
  done
done
echo "as promised"
