#include "link/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace ringbolt::link {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : fd_(std::move(other.fd_)), base_(std::exchange(other.base_, nullptr)), length_(std::exchange(other.length_, 0)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  std::swap(length_, other.length_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (base_ != nullptr) {
    munmap(base_, length_);
  }
}

base::Result<SharedSegment> SharedSegment::create(const char* name, size_t length_bytes) {
  SharedSegment segment;
  segment.fd_.reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.fd_.is_open() || ftruncate(segment.fd_.get(), static_cast<off_t>(length_bytes)) != 0 ||
      fcntl(segment.fd_.get(), F_ADD_SEALS, kSizeSeals) != 0) {
    return base::fail(errno);
  }
  void* address = mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd_.get(), 0);
  if (address == MAP_FAILED) {
    return base::fail(errno);
  }
  segment.base_ = static_cast<std::byte*>(address);
  segment.length_ = length_bytes;
  return segment;
}

base::Result<SharedSegment> SharedSegment::map(const base::UniqueFd& fd, size_t length_bytes, bool is_writable) {
  struct stat status {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals || fstat(fd.get(), &status) != 0 ||
      status.st_size != static_cast<off_t>(length_bytes)) {
    return base::fail(EINVAL);
  }
  const int protection = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = mmap(nullptr, length_bytes, protection, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) {
    return base::fail(errno);
  }
  SharedSegment segment;
  segment.base_ = static_cast<std::byte*>(address);
  segment.length_ = length_bytes;
  return segment;
}

}  // namespace ringbolt::link
