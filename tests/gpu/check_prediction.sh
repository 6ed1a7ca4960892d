#!/bin/sh
# What 'felloe check' says about GPU code, against a real GPU: for each fixture of tests/elf/data the verdict is predicted for this
# GPU's architecture, then its kernel is launched. Needs a GPU and libcudart.so.13 (a toolkit, or torch's in the library path).
# usage: check_prediction.sh FELLOE. Exit code 77 without a GPU or a compiler, 1 when a prediction does not hold.
set -eu
felloe=$1
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../elf/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v nvidia-smi >/dev/null || { echo "check_prediction: no nvidia-smi: skipped"; exit 77; }
arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
cat >"$work/launch.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    void *runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL), *object = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!runtime || !object) {
        printf("%s\n", dlerror());
        return 2;
    }
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))dlsym(runtime, "cudaMalloc");
    int (*last)(void) = (int (*)(void))dlsym(runtime, "cudaGetLastError"), (*wait)(void) = (int (*)(void))dlsym(runtime, "cudaDeviceSynchronize");
    const char *(*text)(int) = (const char *(*)(int))dlsym(runtime, "cudaGetErrorString");
    void (*run)(void *) = (void (*)(void *))dlsym(object, argv[2]);
    void *memory = NULL;
    int code = run ? allocate(&memory, 4096) : 2;
    if (code == 0) {
        run(memory);
        code = last();
        code = code ? code : wait();
    }
    printf("%s\n", text(code));
    return code != 0;
}
C
cc -o "$work/launch" "$work/launch.c" -ldl 2>/dev/null || { echo "check_prediction: no C compiler: skipped"; exit 77; }
cat >"$work/targets.yaml" <<Y
date: 2026-12-01
targets:
  - name: here
    description: this GPU
    date: 2026-12-01
    source: nvidia-smi
    python_default: "3.12"
    torch_default: "2.11.0"
    torch_known: [{version: "2.11.0", cuda: "13.0"}]
    cuda: "13.0"
    driver_cuda: "13.0"
    archs: [$arch]
    glibc: "2.36"
    glibcxx: "3.4.30"
    cxxabi: "1.3.13"
    machine: x86_64
    build: {cuda_compiler: false, gpu: false}
    run: {cuda_compiler: false, gpu: true}
    libraries: [libstdc++.so.6, libgcc_s.so.1, libcudart.so.13]
Y
status=0
for pair in sm90.so:run_scale ptx80.so:run_scale suffixes.so:run_scale mixed.so:run_scale mixed.so:run_shift; do
  object=${pair%%:*} function=${pair##*:}
  verdict=$("$felloe" check --json --data "$work" --target here "$data/$object" 2>/dev/null | sed -n 's/.*"verdict": *"\([a-z-]*\)".*/\1/p' | tail -n 1)
  if said=$("$work/launch" "$data/$object" "$function"); then runs=yes; else runs=no; fi
  # An object is no-kernel when any of its source files is: of mixed.so, one function may still run.
  case $object:$verdict:$runs in
    *:fits:yes | *:fits-by-ptx:yes | *:no-kernel:no | mixed.so:no-kernel:yes) result=ok ;;
    *) result=WRONG; status=1 ;;
  esac
  printf '%-6s %-12s %-10s on %s: predicted %s, %s\n' "$result" "$object" "$function" "$arch" "$verdict" "$said"
done
exit $status
