#pragma once

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

/// While it lives, this thread touches the program's memory on behalf of a peer, as an adapter's DMA would: what orders
/// that with the program's own accesses is a word between the two programs, of which thread sanitizer sees nothing. It
/// disregards the accesses of this scope; without it nothing happens. Keep the scope to the access itself.
class RemoteAccess {
 public:
#if defined(RINGBOLT_HAS_THREAD_SANITIZER)
  RemoteAccess() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~RemoteAccess() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  RemoteAccess() {}  // not defaulted: an unused variable otherwise
  ~RemoteAccess() {}
#endif
  RemoteAccess(const RemoteAccess&) = delete;
  RemoteAccess& operator=(const RemoteAccess&) = delete;
};

}  // namespace ringbolt::base
