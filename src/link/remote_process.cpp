#include "link/remote_process.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/copy.h"
#include "base/lock_guard.h"
#include "link/peer_process.h"

namespace ringbolt::link {

namespace {

/// Descriptors are numbered from below: half of what the process may have is in use. The rest is the program's.
bool is_scarce(int descriptor) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(descriptor) >= limit.rlim_cur / 2;
}

}  // namespace

int RemoteProcess::open_regions() {
  const base::UniqueFd copy(fcntl(peer_->region_table_fd(), F_DUPFD_CLOEXEC, 0));
  if (!copy.is_open()) {
    return errno;
  }
  auto segment = SharedSegment::map(copy, kRegionTableBytes, false);
  if (!segment) {
    return segment.error().value;
  }
  region_segment_ = std::move(*segment);
  auto view = RegionTableView::open(region_segment_);
  if (!view) {
    return view.error().value;
  }
  regions_ = *view;
  return 0;
}

int RemoteProcess::open_wakes() {
  const base::UniqueFd copy(fcntl(peer_->wake_table_fd(), F_DUPFD_CLOEXEC, 0));
  auto segment = copy.is_open() ? SharedSegment::map(copy, kWakeBytes, true) : base::fail(errno);
  wakes_error_ = segment ? 0 : segment.error().value;
  if (segment) {
    wake_segment_ = std::move(*segment);
  }
  return wakes_error_;
}

PeerQueue RemoteProcess::queue(WakeName name, uint32_t number, base::UniqueFd file) {
  std::shared_ptr<const base::UniqueFd> channel;
  if (number != 0) {
    const base::LockGuard guard(channels_mutex_);
    if (channels_.size() >= purge_at_) {
      std::erase_if(channels_, [](const auto& one) { return one.second.expired(); });
      purge_at_ = std::max<size_t>(64, 2 * channels_.size());
    }
    auto& known = channels_[number];
    channel = known.lock();
    if (channel == nullptr && file.is_open() && is_event_descriptor(file.get()) && !is_scarce(file.get())) {
      channel = std::make_shared<const base::UniqueFd>(std::move(file));
      known = channel;
    }
  }
  return PeerQueue(*reinterpret_cast<WakeMemory*>(wake_segment_.data()), name, std::move(channel));
}

CopyOutcome RemoteProcess::write(const Region& region, uint64_t address, std::span<const iovec> pieces) const {
  if (!has_regions()) {
    return CopyOutcome::unreachable;
  }
  if (region.arena_id != 0) {
    uint64_t at = address;
    for (const iovec& piece : pieces) {
      std::byte* target = mapped(region, at, piece.iov_len);
      if (target == nullptr) {
        return copy_by_kernel(true, region.host_first + (address - region.first), pieces);
      }
      base::copy(target, piece.iov_base, piece.iov_len);
      at += piece.iov_len;
    }
    return CopyOutcome::done;
  }
  return copy_by_kernel(true, region.host_first + (address - region.first), pieces);
}

CopyOutcome RemoteProcess::read(const Region& region, uint64_t address, std::span<const iovec> pieces) const {
  if (!has_regions()) {
    return CopyOutcome::unreachable;
  }
  if (region.arena_id != 0) {
    uint64_t at = address;
    for (const iovec& piece : pieces) {
      const std::byte* source = mapped(region, at, piece.iov_len);
      if (source == nullptr) {
        return copy_by_kernel(false, region.host_first + (address - region.first), pieces);
      }
      base::copy(piece.iov_base, source, piece.iov_len);
      at += piece.iov_len;
    }
    return CopyOutcome::done;
  }
  return copy_by_kernel(false, region.host_first + (address - region.first), pieces);
}

CopyOutcome RemoteProcess::copy_by_kernel(bool is_write, uint64_t remote, std::span<const iovec> pieces) const {
  if (!peer_->memory_is_reachable()) {
    return CopyOutcome::unreachable;
  }
  for (const iovec& piece : pieces) {
    size_t done = 0;
    while (done < piece.iov_len) {
      iovec local{static_cast<std::byte*>(piece.iov_base) + done, piece.iov_len - done};
      iovec far{reinterpret_cast<void*>(remote), piece.iov_len - done};
      const ssize_t moved = is_write ? process_vm_writev(peer_->pid(), &local, 1, &far, 1, 0)
                                     : process_vm_readv(peer_->pid(), &local, 1, &far, 1, 0);
      if (moved <= 0) {
        // process_vm_readv(2): EFAULT, it is not mapped there; ESRCH, no such process; EPERM, Yama or a change of user.
        return moved == 0 || errno == EFAULT ? CopyOutcome::fault
               : errno == ESRCH              ? CopyOutcome::gone
                                             : CopyOutcome::unreachable;
      }
      done += static_cast<size_t>(moved);
      remote += static_cast<uint64_t>(moved);
    }
  }
  return CopyOutcome::done;
}

}  // namespace ringbolt::link
