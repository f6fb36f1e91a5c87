#include "verbs/objects.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include <fmt/format.h>

#include "base/error.h"
#include "verbs/refusal.h"

namespace ringbolt::verbs {
namespace {

struct FreeList {
  const Calls* calls;
  void operator()(ibv_device** list) const { calls->free_device_list(list); }
};

/// The devices of a library while it is looked at. Contexts outlive it.
class DeviceList {
 public:
  // Freed at the end of the scope: a context that was opened keeps its device (ibv_free_device_list(3)).
  explicit DeviceList(const Library& library) : calls_(library.calls()), list_(nullptr, FreeList{&calls_}) {
    const DriverCall at(Step::kGetDeviceList, library.name());
    errno = 0;
    list_.reset(calls_.get_device_list(&count_));
    if (!list_) {
      refuse(Step::kGetDeviceList, errno, library.name());
    }
  }
  std::span<ibv_device*> all() const { return {list_.get(), static_cast<size_t>(count_)}; }
  std::string name(ibv_device* device) const { return calls_.get_device_name(device); }

 private:
  const Calls& calls_;
  int count_ = 0;
  std::unique_ptr<ibv_device*, FreeList> list_;
};

// A failure is made up for by is_readable().
void make_non_blocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

// Now: does not wait. False after a signal as well.
bool is_readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & POLLIN) != 0;
}

/// Takes over what a call returned. `object` makes the words for a refusal once errno has been read.
template <class T, class Words>
Owned<T> own(const Library& library, T* made, Step step, const Words& object) {
  // Providers set errno; some leave 0, which refuse() takes for ENOMEM.
  if (made == nullptr) {
    const int error = errno;
    refuse(step, error, object());
  }
  return Owned<T>(made, Close(library));
}

}  // namespace

// Throws base::Error: ENODEV, or what opening says. May block in the driver.
Context::Context(const Library& library, std::string_view device) : library_(library) {
  const DeviceList list(library);
  ibv_device* found = nullptr;
  std::string names;
  for (ibv_device* one : list.all()) {
    const std::string name = list.name(one);
    names += (names.empty() ? "" : ", ") + name;
    // The first of that name; all are listed for the error.
    if (found == nullptr && (device.empty() || device == name)) {
      found = one;
      device_ = name;
    }
  }
  if (found == nullptr) {
    throw base::Error(ENODEV, "find the device", device.empty() ? library.name() : std::string(device),
                      names.empty() ? fmt::format("{} has no device", library.name())
                                    : fmt::format("{} has {}", library.name(), names));
  }
  const DriverCall at(Step::kOpenDevice, device_);
  errno = 0;
  context_ = own(library, calls().open_device(found), Step::kOpenDevice, [&] { return device_; });
  make_non_blocking(context_->async_fd);
}

// Not owned: of a connection manager's identifier, which closes it.
Context::Context(const Library& library, ibv_context* opened) : library_(library), context_(opened, Close()) {
  const char* name = calls().get_device_name(opened->device);
  device_ = name == nullptr ? "?" : name;
}

base::Result<ibv_device_attr> Context::query_device() const {
  if (calls().query_device == nullptr) {
    return base::fail(ENOSYS);
  }
  const DriverCall at(Step::kQueryDevice, device_);
  ibv_device_attr attributes{};
  errno = 0;
  const int returned = calls().query_device(get(), &attributes);
  if (const int error = error_of(returned, errno)) {
    return base::fail(error);
  }
  return attributes;
}

base::Result<ibv_port_attr> Context::query_port(uint8_t port) const {
  const DriverCall at(Step::kQueryPort, device_);
  ibv_port_attr attributes{};
  if (const int error = verbs::query_port(calls(), get(), port, attributes)) {
    return base::fail(error);
  }
  return attributes;
}

base::Result<ibv_gid> Context::query_gid(uint8_t port, int index) const {
  const DriverCall at(Step::kQueryGid, device_);
  ibv_gid gid{};
  errno = EINVAL;  // the call says -1 and nothing more
  const int returned = calls().query_gid(get(), port, index, &gid);
  if (const int error = error_of(returned, errno)) {
    return base::fail(error);
  }
  return gid;
}

// Never waits. EAGAIN: none is there.
base::Result<ibv_async_event> Context::take_event() const {
  if (calls().get_async_event == nullptr || calls().ack_async_event == nullptr) {
    return base::fail(ENOSYS);
  }
  // A descriptor that could not be made non-blocking must not make this wait.
  if (!is_readable(get()->async_fd)) {
    return base::fail(EAGAIN);
  }
  ibv_async_event event{};
  errno = 0;
  if (calls().get_async_event(get(), &event) != 0) {
    return base::fail(errno == 0 ? EAGAIN : errno);
  }
  calls().ack_async_event(&event);
  return event;
}

std::vector<std::string> device_names(const Library& library) {
  const DeviceList list(library);
  std::vector<std::string> names;
  for (ibv_device* device : list.all()) {
    names.push_back(list.name(device));
  }
  return names;
}

// Throws base::Error. The context must outlive it, as a domain must outlive its regions and queue pairs.
ProtectionDomain::ProtectionDomain(const Context& context) : context_(&context) {
  const DriverCall at(Step::kAllocPd, context.device());
  errno = 0;
  pd_ =
      own(context.library(), context.calls().alloc_pd(context.get()), Step::kAllocPd, [&] { return context.device(); });
}

CompletionChannel::CompletionChannel(const Context& context) : context_(&context) {
  const Calls& calls = context.calls();
  if (calls.create_comp_channel == nullptr || calls.destroy_comp_channel == nullptr || calls.get_cq_event == nullptr ||
      calls.ack_cq_events == nullptr) {
    refuse(Step::kCreateChannel, EOPNOTSUPP, context.device());
  }
  const DriverCall at(Step::kCreateChannel, context.device());
  errno = 0;
  channel_ = own(context.library(), calls.create_comp_channel(context.get()), Step::kCreateChannel,
                 [&] { return context.device(); });
  make_non_blocking(channel_->fd);
}

base::Result<ibv_cq*> CompletionChannel::take_event() const {
  if (!is_readable(fd())) {
    return base::fail(EAGAIN);
  }
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  errno = 0;
  if (context_->calls().get_cq_event(get(), &cq, &cq_context) != 0) {
    return base::fail(errno == 0 ? EAGAIN : errno);
  }
  // At once, so that the queue can be destroyed at any time: ibv_destroy_cq() waits for what is not acknowledged.
  context_->calls().ack_cq_events(cq, 1);
  return cq;
}

CompletionQueue::CompletionQueue(const Context& context, int entries, const CompletionChannel* channel)
    : context_(&context) {
  const DriverCall at(Step::kCreateCq, context.device());
  errno = 0;
  cq_ =
      own(context.library(),
          context.calls().create_cq(context.get(), entries, nullptr, channel == nullptr ? nullptr : channel->get(), 0),
          Step::kCreateCq, [&] { return fmt::format("{}, a queue of {} completions", context.device(), entries); });
}

// `memory` stays the caller's, and has to stay mapped until the region has gone.
MemoryRegion::MemoryRegion(const ProtectionDomain& pd, std::span<std::byte> memory, int access) {
  const Context& context = pd.context();
  const DriverCall at(Step::kRegMr, context.device());
  errno = 0;
  mr_ =
      own(context.library(), context.calls().reg_mr(pd.get(), memory.data(), memory.size(), access), Step::kRegMr, [&] {
        return fmt::format("{}, a region of {} bytes at {}, access {:#x}", context.device(), memory.size(),
                           static_cast<const void*>(memory.data()), access);
      });
}

std::string text_of(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  return text;
}

}  // namespace ringbolt::verbs
