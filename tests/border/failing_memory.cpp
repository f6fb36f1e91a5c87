#include "failing_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

// glibc's own, beneath the names that a program may replace.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* piece, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* piece);
}

namespace ringbolt::border {
namespace {

// In the order of the thread's requests: 0 while nothing is to be refused.
thread_local uint32_t left_until_shortage = 0;
thread_local bool has_run_short = false;
std::atomic<int64_t> held{0};

bool is_short() {
  if (left_until_shortage == 0 || --left_until_shortage != 0) {
    return false;
  }
  has_run_short = true;
  errno = ENOMEM;
  return true;
}

void* count(void* piece) {
  held.fetch_add(piece != nullptr ? 1 : 0, std::memory_order_relaxed);
  return piece;
}

}  // namespace

Shortage::Shortage(uint32_t nth) {
  has_run_short = false;
  left_until_shortage = nth;
}

Shortage::~Shortage() { left_until_shortage = 0; }

bool Shortage::has_struck() const { return has_run_short; }

int64_t pieces_held() { return held.load(std::memory_order_relaxed); }

}  // namespace ringbolt::border

using ringbolt::border::count;
using ringbolt::border::held;
using ringbolt::border::is_short;

#pragma GCC visibility push(default)  // for the libraries beneath

extern "C" {

void* malloc(size_t size) { return is_short() ? nullptr : count(__libc_malloc(size)); }

void* calloc(size_t pieces, size_t size) { return is_short() ? nullptr : count(__libc_calloc(pieces, size)); }

void* realloc(void* piece, size_t size) {
  if (is_short()) {
    return nullptr;
  }
  void* const moved = __libc_realloc(piece, size);
  if (piece == nullptr) {
    count(moved);
  }
  return moved;
}

void* memalign(size_t alignment, size_t size) { return is_short() ? nullptr : count(__libc_memalign(alignment, size)); }

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** piece, size_t alignment, size_t size) {
  *piece = memalign(alignment, size);
  return *piece == nullptr ? ENOMEM : 0;
}

void free(void* piece) {
  held.fetch_sub(piece != nullptr ? 1 : 0, std::memory_order_relaxed);
  __libc_free(piece);
}

void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) {
  if (is_short()) {
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

int memfd_create(const char* name, unsigned flags) {
  return is_short() ? -1 : static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

}  // extern "C"

#pragma GCC visibility pop
