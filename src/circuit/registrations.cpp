#include "circuit/registrations.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/lock_guard.h"
#include "verbs/expected_refusals.h"

namespace ringbolt::circuit {
namespace {

// The verbs ask for local write where remote write is granted (ibv_reg_mr(3)).
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

uintptr_t page_bytes() {
  static const auto bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

const Registered* Registrations::add(void* data, size_t size) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  const uintptr_t page = page_bytes();
  // So that rounding up to pages can't wrap around.
  if (size > UINTPTR_MAX - at || at + size > UINTPTR_MAX - page) {
    return nullptr;
  }
  const uintptr_t first = at / page * page;
  const uintptr_t end = std::max((at + size + page - 1) / page * page, first + page);
  const base::LockGuard guard(lock_);
  // Ranges that begin later do not hold it.
  for (auto found = by_first_.begin(); found != by_first_.end() && found->first <= first; ++found) {
    if (found->second->end_ >= end) {
      ++found->second->n_users_;
      return found->second.get();
    }
  }
  auto made = std::make_unique<Registered>(first, end);
  made->n_users_ = 1;
  for (size_t device = 0; device < kMostDevices; ++device) {
    if ((in_use_ >> device & 1U) != 0) {
      register_with(*made, device);
    }
  }
  return by_first_.emplace(first, std::move(made))->second.get();
}

void Registrations::remove(const Registered* one) {
  const base::LockGuard guard(lock_);
  const auto found = std::ranges::find_if(by_first_, [&](const auto& entry) { return entry.second.get() == one; });
  // Under the lock: whoever adds the same pages next must not find them half gone.
  if (found != by_first_.end() && --found->second->n_users_ == 0) {
    by_first_.erase(found);
  }
}

void Registrations::use(const Device& device) {
  const base::LockGuard guard(lock_);
  if (device.number >= kMostDevices || (in_use_ >> device.number & 1U) != 0) {
    return;
  }
  in_use_ |= 1U << device.number;
  for (const auto& [first, one] : by_first_) {
    register_with(*one, device.number);
  }
}

size_t Registrations::size() {
  const base::LockGuard guard(lock_);
  return by_first_.size();
}

void Registrations::register_with(Registered& one, size_t device) {
  const Device& with = devices_->device(device);
  const size_t length = one.end_ - one.first_;
  try {
    const verbs::ExpectedRefusals expected(with.context.calls());
    auto& region = one.regions_[device];
    region.emplace(with.pd, std::span(reinterpret_cast<std::byte*>(one.first_), length), kAccess);
    // Before the bit: who acquires `have_` reads keys that nobody writes any more.
    one.keys_[device] = {region->local_key(), region->remote_key()};
    one.have_.fetch_or(1U << device, std::memory_order_release);
  } catch (const base::Error& error) {
    log_(std::exchange(has_warned_, true) ? Level::info : Level::warning,
         fmt::format(
             "{} does not register {} bytes at {:#x} (errno {}): messages from and to that memory are copied; {}",
             with.context.device(), length, one.first_, error.errno_value(), error.what()));
  }
}

}  // namespace ringbolt::circuit
