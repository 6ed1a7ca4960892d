#include <pybind11/pybind11.h>

static int painted(int vertices)
{
    return vertices;
}

PYBIND11_MODULE(mesh_inpaint_processor, m)
{
    m.def("painted", &painted);
}
