// NCCL's headers ask for it; what they use of it is in cuda_runtime.h.
#pragma once
