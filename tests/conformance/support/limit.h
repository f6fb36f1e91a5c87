// Limits of this process and of others, for tests of what can't be had.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

namespace ringbolt::conformance {

/// A limit of a process, from here until the end of this object's life.
class Limit {
 public:
  Limit(pid_t pid, __rlimit_resource what, uint64_t value);
  ~Limit();
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  pid_t pid_;
  __rlimit_resource what_;
  rlimit before_{};
};

/// What the process uses now, for RLIMIT_AS.
uint64_t address_space_bytes(pid_t pid);
/// With this as RLIMIT_NOFILE the process can open no more files.
uint64_t next_descriptor(pid_t pid);

}  // namespace ringbolt::conformance
