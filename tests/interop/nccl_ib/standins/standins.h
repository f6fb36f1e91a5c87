// Comes before every source of NCCL that is built here. The IB transport includes the header of communicators, which
// includes all of NCCL and CUDA, and uses nothing of it: those headers count as read.
#pragma once
#include "cuda_runtime.h"

#define NCCL_COMM_H_
#define NCCL_CUDAWRAP_H_
#define NCCL_DEVICE_H_
#define NCCL_MEM_MANAGER_H_
#define NCCL_NVTX_H_
#define NCCL_P2P_H_

#define MAXCHANNELS 64
enum ncclMemType_t { ncclMemPersist, ncclMemScratch };
extern int ncclCuMemHandleType;
