#pragma once

#include <cstdio>
#include <cstdlib>

/// A broken precondition is a bug of ours: say where and stop. Always on.
#define RINGBOLT_ASSERT(condition)                                                                  \
  do {                                                                                              \
    if (!(condition)) [[unlikely]] {                                                                \
      std::fprintf(stderr, "ringbolt: %s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                 \
    }                                                                                               \
  } while (false)
