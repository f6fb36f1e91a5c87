// What NCCL's IB transport calls outside of the sources that are built here: a machine without a GPU, and variables
// that come from the environment alone.
#include "standins.h"

#include <cstdint>
#include <cstdlib>

int ncclCuMemHandleType = 0;

cudaError_t cudaGetLastError() { return cudaErrorNoDevice; }
const char* cudaGetErrorString(cudaError_t) { return "no GPU"; }
cudaError_t cudaGetDevice(int*) { return cudaErrorNoDevice; }
cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int) { return cudaErrorNoDevice; }
cudaError_t cudaDeviceGetPCIBusId(char*, int, int) { return cudaErrorNoDevice; }
cudaError_t cudaFreeHost(void*) { return cudaErrorNoDevice; }

const char* ncclEnvPluginGetEnv(const char* name) { return std::getenv(name); }
bool ncclEnvPluginInitialized() { return true; }
void ncclInitEnv() {}
std::int64_t ncclParamSetCpuStackSize() { return 0; }
