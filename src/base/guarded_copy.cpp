#include "base/guarded_copy.h"

#include <linux/mman.h>  // MADV_POPULATE_WRITE: the C library has it from glibc 2.35 on
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/remote_access.h"

namespace ringbolt::base {
namespace {

bool is_mapped(uintptr_t first, size_t length, size_t page) {
  // A byte a page, of which nothing is used: mincore() fails with ENOMEM where something is not mapped.
  std::array<unsigned char, 256> resident;
  const size_t step = resident.size() * page;
  for (size_t at = 0; at < length; at += step) {
    if (mincore(reinterpret_cast<void*>(first + at), length - at < step ? length - at : step, resident.data()) != 0) {
      return false;
    }
  }
  return true;
}

/// Whether this kernel says what may be done with a page. Before 5.14 it does not know the advice, and can tell no more
/// than what is mapped; an emulator (QEMU 7.2) takes any advice and does nothing.
bool kernel_can_tell(size_t page) {
  void* probe = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) {
    return false;
  }
  // A page that may only be read: a kernel that knows the advice lets the first one pass, and refuses the second one
  // with EFAULT.
  const bool works = madvise(probe, page, MADV_POPULATE_READ) == 0 && madvise(probe, page, MADV_POPULATE_WRITE) != 0;
  munmap(probe, page);
  return works;
}

}  // namespace

bool is_accessible(const void* memory, size_t length_bytes, bool for_writing) {
  if (length_bytes == 0) {
    return true;
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = address / page * page;
  const size_t length = address + length_bytes - first;
  static const bool can_be_told = kernel_can_tell(page);
  if (!can_be_told) {
    return is_mapped(first, length, page);
  }
  // The pages come into memory by it (madvise(2), MADV_POPULATE_*): what is about to be copied would fault them in
  // anyway.
  return madvise(reinterpret_cast<void*>(first), length, for_writing ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
}

bool guarded_copy(void* target, const void* source, size_t length_bytes) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  while (length_bytes > 0) {
    const iovec into{to, length_bytes};
    const iovec out_of{const_cast<std::byte*>(from), length_bytes};
    ssize_t moved = 0;
    {
      const RemoteAccess by_peer;
      // Of our own process: it needs no permission but where a seccomp filter or Yama's strictest setting forbids the
      // call as such. It may move less than all where a page is missing, and the next round then finds that one
      // first.
      moved = process_vm_readv(getpid(), &into, 1, &out_of, 1, 0);
    }
    if (moved <= 0) {
      const bool is_forbidden = moved < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES);
      if (!is_forbidden || !is_accessible(to, length_bytes, true) || !is_accessible(from, length_bytes, false)) {
        return false;
      }
      const RemoteAccess by_peer;
      std::memcpy(to, from, length_bytes);
      return true;
    }
    to += moved;
    from += moved;
    length_bytes -= static_cast<size_t>(moved);
  }
  return true;
}

}  // namespace ringbolt::base
