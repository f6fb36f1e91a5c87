#include "allocations.h"

#include <execinfo.h>

#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RINGBOLT_OTHER_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define RINGBOLT_OTHER_ALLOCATOR 1
#endif
#endif

namespace ringbolt::test {

constinit thread_local Allocations t_allocations;

void prepare_allocations() {
  std::array<void*, 2> unused{};
  backtrace(unused.data(), 2);
}

#ifdef RINGBOLT_OTHER_ALLOCATOR
bool allocations_are_counted() { return false; }
#else
bool allocations_are_counted() { return true; }

namespace {

void note() {
  if (t_allocations.is_on && t_allocations.count++ == 0) {
    t_allocations.is_on = false;
    backtrace(t_allocations.first.data(), static_cast<int>(t_allocations.first.size()));
    t_allocations.is_on = true;
  }
}

}  // namespace
#endif

}  // namespace ringbolt::test

#ifndef RINGBOLT_OTHER_ALLOCATOR
// glibc's own entries stay reachable under these names.
extern "C" {
void* __libc_malloc(size_t size);
void __libc_free(void* memory);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ringbolt::test::note();
  return __libc_malloc(size);
}

void free(void* memory) {
  if (memory != nullptr) {
    ringbolt::test::note();
  }
  __libc_free(memory);
}

void* calloc(size_t count, size_t size) {
  ringbolt::test::note();
  return __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  ringbolt::test::note();
  return __libc_realloc(memory, size);
}

void* memalign(size_t alignment, size_t size) {
  ringbolt::test::note();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  ringbolt::test::note();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  ringbolt::test::note();
  void* const made = __libc_memalign(alignment, size);
  if (made == nullptr) {
    return ENOMEM;
  }
  *memory = made;
  return 0;
}
}
#endif
