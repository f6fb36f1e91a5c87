#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "verbs/errand.h"
#include "verbs/library.h"

// What a verbs program builds before it moves bytes. Each class owns one object of the library and gives it back when
// it ends; none may outlive what it was built on (member order is destruction order). Constructors throw base::Error
// that names the device, the call, the numbers and what to do. All are move-only and not thread-safe, unless said
// otherwise.
namespace ringbolt::verbs {

/// Gives an object back through the library that made it. What the library answers to that is not looked at: there is
/// nobody left to tell. Holds the calls, so an object may be given back after its Library value has gone. Without
/// calls: nothing is given back.
class Close {
 public:
  Close() = default;
  explicit Close(const Library& library) : calls_(library.shared_calls()) {}
  void operator()(ibv_context* context) const {
    if (calls_ != nullptr) {  // else it is borrowed
      give_back("ibv_close_device", calls_->close_device, context);
    }
  }
  void operator()(ibv_pd* pd) const { give_back("ibv_dealloc_pd", calls_->dealloc_pd, pd); }
  void operator()(ibv_mr* mr) const { give_back("ibv_dereg_mr", calls_->dereg_mr, mr); }
  void operator()(ibv_comp_channel* channel) const {
    give_back("ibv_destroy_comp_channel", calls_->destroy_comp_channel, channel);
  }
  void operator()(ibv_cq* cq) const { give_back("ibv_destroy_cq", calls_->destroy_cq, cq); }
  void operator()(ibv_qp* qp) const { give_back("ibv_destroy_qp", calls_->destroy_qp, qp); }
  void operator()(ibv_ah* handle) const { give_back("ibv_destroy_ah", calls_->destroy_ah, handle); }

 private:
  template <class T>
  static void give_back(std::string_view name, int (*call)(T*), T* object) {
    const DriverCall at(name);
    call(object);
  }

  std::shared_ptr<const Calls> calls_;
};

template <class T>
using Owned = std::unique_ptr<T, Close>;

/// An open device. Stays where it is, since all that is built on it points to it: hold it in a unique_ptr to move it.
class Context {
 public:
  /// Opens the device of that name; of an empty name the first one. The error says which there are. Blocks as the
  /// driver does.
  Context(const Library& library, std::string_view device);
  /// Around a device that a connection manager has opened with the same library, and keeps open. The library closes
  /// it. `opened` outlives this. Its event descriptor is left as it is.
  Context(const Library& library, ibv_context* opened);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const std::string& device() const { return device_; }
  const Library& library() const { return library_; }
  const Calls& calls() const { return library_.calls(); }
  ibv_context* get() const { return context_.get(); }

  /// What ibv_query_device says; ENOSYS if the library lacks that call, as Apple's may. Thread-safe.
  base::Result<ibv_device_attr> query_device() const;
  /// Thread-safe.
  base::Result<ibv_port_attr> query_port(uint8_t port) const;
  /// One entry of the GID table; an empty one is all zeros and no error. Thread-safe.
  base::Result<ibv_gid> query_gid(uint8_t port, int index) const;
  /// The next event of the device that nobody has taken yet, acknowledged. EAGAIN if there is none, ENOSYS without the
  /// call. Does not block.
  base::Result<ibv_async_event> take_event() const;

 private:
  Library library_;
  std::string device_;
  Owned<ibv_context> context_;
};

/// The names of the library's devices, in its order. Throws base::Error.
std::vector<std::string> device_names(const Library& library);

/// Refers to its context, which must stay where it is.
class ProtectionDomain {
 public:
  explicit ProtectionDomain(const Context& context);

  const Context& context() const { return *context_; }
  ibv_pd* get() const { return pd_.get(); }

 private:
  const Context* context_;
  Owned<ibv_pd> pd_;
};

/// Tells that completions have come, for who wants to sleep. Not every device has them (EOPNOTSUPP). Destroyed after
/// all queues that use it (ibv_destroy_comp_channel(3)).
class CompletionChannel {
 public:
  explicit CompletionChannel(const Context& context);

  /// Readable when there is an event. Does not block. Owned by the channel.
  int fd() const { return channel_->fd; }
  ibv_comp_channel* get() const { return channel_.get(); }
  /// The completion queue of the next event, acknowledged; EAGAIN if there is none. Does not block.
  base::Result<ibv_cq*> take_event() const;

 private:
  const Context* context_;
  Owned<ibv_comp_channel> channel_;
};

/// Destroyed after all queue pairs that use it.
class CompletionQueue {
 public:
  /// At least `entries` deep. With a channel, arm() makes the next completion an event of it.
  CompletionQueue(const Context& context, int entries, const CompletionChannel* channel = nullptr);

  const Context& context() const { return *context_; }
  ibv_cq* get() const { return cq_.get(); }
  /// What the device has granted.
  int entries() const { return cq_->cqe; }

  /// Takes up to room.size() completions: how many, from the front. Never blocks. A failure is the queue's end: its
  /// errno. Hot path.
  base::Result<size_t> poll(std::span<ibv_wc> room) const noexcept {
    const int n_taken = ibv_poll_cq(cq_.get(), static_cast<int>(room.size()), room.data());
    if (n_taken < 0) [[unlikely]] {
      return base::fail(error_of(n_taken, errno));
    }
    return static_cast<size_t>(n_taken);
  }
  /// Asks for an event; poll once more afterwards. 0, or a positive errno.
  [[nodiscard]] int arm(bool is_solicited_only = false) const noexcept {
    const int returned = ibv_req_notify_cq(cq_.get(), is_solicited_only ? 1 : 0);
    return error_of(returned, errno);
  }

 private:
  const Context* context_;
  Owned<ibv_cq> cq_;
};

/// A registered piece of memory, which must outlive it. Throws where the device can't pin the memory. Once it is
/// destroyed no device reads or writes there by its keys.
class MemoryRegion {
 public:
  /// `access`: IBV_ACCESS_...
  MemoryRegion(const ProtectionDomain& pd, std::span<std::byte> memory, int access = IBV_ACCESS_LOCAL_WRITE);

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(mr_->addr), mr_->length}; }
  uint32_t local_key() const { return mr_->lkey; }
  uint32_t remote_key() const { return mr_->rkey; }
  ibv_mr* get() const { return mr_.get(); }
  /// `length` bytes from `offset` on, as a piece of a request. Hot path. Bounds are the caller's business; `length`
  /// below 2^32.
  ibv_sge piece(size_t offset, size_t length) const {
    return {reinterpret_cast<uintptr_t>(mr_->addr) + offset, static_cast<uint32_t>(length), mr_->lkey};
  }

 private:
  Owned<ibv_mr> mr_;
};

/// "::ffff:10.1.2.3" or "fe80::1", as addresses are written.
std::string text_of(const ibv_gid& gid);

}  // namespace ringbolt::verbs
