#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"

/// C handles of the two libraries beneath, owned.
namespace ringbolt::rsocket {

/// Calls a function that gives a handle back.
/// What the function answers is dropped: nothing can be done about it in a destructor.
template <auto Function>
struct Release {
  template <class T>
  void operator()(T* handle) const {
    Function(handle);
  }
};

using CompletionChannel = std::unique_ptr<ibv_comp_channel, Release<&ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Release<&ibv_destroy_cq>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Release<&ibv_dereg_mr>>;
using EventChannel = std::unique_ptr<rdma_event_channel, Release<&rdma_destroy_event_channel>>;
using CmId = std::unique_ptr<rdma_cm_id, Release<&rdma_destroy_id>>;
using CmEvent = std::unique_ptr<rdma_cm_event, Release<&rdma_ack_cm_event>>;

/// Zeroed pages of anonymous memory. Move-only.
class Pages {
 public:
  Pages() = default;
  /// Throws base::Error; `name` says in it what the memory is for.
  Pages(size_t bytes, const char* name) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) {
      throw base::Error(errno, "mmap", name);
    }
  }
  Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, MAP_FAILED)), bytes_(other.bytes_) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Pages() {
    if (data_ != MAP_FAILED) {
      ::munmap(data_, bytes_);
    }
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t size() const { return bytes_; }

 private:
  void* data_ = MAP_FAILED;
  size_t bytes_ = 0;
};

/// Memory that a protection domain knows; null with errno. As ibv_reg_mr, whose macro warns of its own conversions.
/// The memory stays the caller's, and must not go before the region.
inline MemoryRegion register_memory(ibv_pd* pd, void* address, size_t bytes, int access) {
  return MemoryRegion((ibv_reg_mr)(pd, address, bytes, access));
}

/// Zeroed pages, registered with a protection domain. Move-only.
class RegisteredPages {
 public:
  RegisteredPages() = default;
  /// Throws base::Error; `name` says in it what the memory is for.
  RegisteredPages(ibv_pd* pd, size_t bytes, int access, const char* name)
      : pages_(bytes, name), region_(register_memory(pd, pages_.data(), bytes, access)) {
    if (region_ == nullptr) {
      throw base::Error(errno == 0 ? ENOMEM : errno, "ibv_reg_mr", name);
    }
  }

  std::byte* data() const { return pages_.data(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(pages_.data()); }
  std::span<std::byte> bytes() const { return {pages_.data(), pages_.size()}; }
  uint32_t lkey() const { return region_->lkey; }
  uint32_t rkey() const { return region_->rkey; }

 private:
  Pages pages_;
  MemoryRegion region_;  // gone before its pages
};

}  // namespace ringbolt::rsocket
