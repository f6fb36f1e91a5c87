#pragma once

#include <atomic>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RINGBOLT_HAS_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define RINGBOLT_HAS_THREAD_SANITIZER 1
#endif

#if defined(RINGBOLT_HAS_THREAD_SANITIZER)
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace ringbolt::base {

/// Between two operations of a queue pair on the program's memory, which a thread that polls that memory sees in their
/// order: whoever finds the word of a second WRITE finds all of the first one, and a second READ is not older than the
/// first: work requests of one send queue take effect in their order (InfiniBand specification, 10.8.3.3). Both ways,
/// since either may be a READ. On x86, which stores in order and loads in order, the compiler alone is told.
// For every pair of operations, also of one thread: the order is promised to the observer, not to us.
inline void remote_access_fence() { std::atomic_thread_fence(std::memory_order_acq_rel); }

/// While it lives, this thread touches the program's memory on behalf of a peer, as an adapter's DMA would: what orders
/// that with the program's own accesses is a word between the two programs, of which thread sanitizer sees nothing. It
/// disregards the accesses of this scope; without it only the fence above remains. Keep the scope to the access itself.
class RemoteAccess {
 public:
#if defined(RINGBOLT_HAS_THREAD_SANITIZER)
  RemoteAccess() {
    remote_access_fence();
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~RemoteAccess() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  RemoteAccess() { remote_access_fence(); }
  ~RemoteAccess() {}
#endif
  RemoteAccess(const RemoteAccess&) = delete;
  RemoteAccess& operator=(const RemoteAccess&) = delete;
};

}  // namespace ringbolt::base
