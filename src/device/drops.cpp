#include "device/drops.h"

#include <fmt/format.h>

#include <new>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "base/say.h"

namespace ringbolt::device {
namespace {

void count_drop(cluster::CounterPage& page, Drop why) {
  page.add(kSharedRcvDrops);
  switch (why) {
    case Drop::bad_checksum:
      page.add(kSharedWrongIcrc);
      [[fallthrough]];
    case Drop::unreadable:
    case Drop::inbox_full:  // the specification counts packets that find no buffer among the errors (16.1.3.5)
      page.add(kSharedRcvErrors);
      break;
    case Drop::foreign_partition:
      page.add(kSharedRcvConstraintErrors);
      break;
    case Drop::no_receive:
      page.add(kSharedOutOfBuffer);
      break;
    default:
      break;
  }
}

}  // namespace

const char* reason_of(Drop why) {
  switch (why) {
    case Drop::bad_checksum:
      return "a wrong checksum";
    case Drop::unreadable:
      return "unreadable headers";
    case Drop::foreign_partition:
      return "a foreign P_Key";
    case Drop::bad_management:
      return "no management datagram";
    case Drop::unknown_queue_pair:
      return "an unknown queue pair";
    case Drop::not_ready:
      return "a queue pair that is not ready";
    case Drop::wrong_type:
      return "another type of queue pair";
    case Drop::wrong_source:
      return "a wrong source";
    case Drop::unsealed:
      return "no seal of its peer";
    case Drop::inbox_full:
      return "a full inbox";
    case Drop::wrong_qkey:
      return "a wrong Q_Key";
    case Drop::no_receive:
      return "no posted receive";
  }
  return "";
}

void Drops::add_port(uint32_t interface_index, const std::string& name,
                     std::shared_ptr<cluster::CounterPage> counters) {
  const base::LockGuard guard(adding_);
  for (const auto& entry : entries_) {
    if (entry->interface_index == interface_index) {
      return;
    }
  }
  auto entry = std::make_unique<Entry>(name);
  entry->interface_index = interface_index;
  entry->page = std::move(counters);
  entry->next = first_.load(std::memory_order_relaxed);
  entries_.push_back(std::move(entry));  // may throw: then nobody has found it
  first_.store(entries_.back().get(), std::memory_order_release);
}

const Drops::Entry* Drops::find(uint32_t interface_index) const {
  const Entry* entry = first_.load(std::memory_order_acquire);
  while (entry != nullptr && entry->interface_index != interface_index) {
    entry = entry->next;
  }
  return entry;
}

cluster::CounterPage* Drops::counters_of(uint32_t interface_index) const {
  const Entry* entry = find(interface_index);
  return entry == nullptr ? nullptr : entry->page.get();
}

void Drops::count(uint32_t interface_index, Drop why) {
  Entry* entry = find(interface_index);
  if (entry == nullptr) {
    entry = &others_;
  }
  if (entry->page != nullptr) {
    count_drop(*entry->page, why);
  }
  const auto kind = static_cast<size_t>(why);
  const uint64_t so_far = entry->counts[kind].fetch_add(1, std::memory_order_relaxed) + 1;
  if (is_logged_ && entry->paces[kind].may_say(base::now_ns())) {
    try {
      base::say(fmt::format("ringbolt: {}: dropped a packet: {} ({} so far)\n", entry->name, reason_of(why), so_far));
    } catch (const std::bad_alloc&) {  // no memory for words
    }
  }
}

std::vector<Drops::Port> Drops::read() const {
  const auto copy = [](const Entry& entry) {
    Port port{entry.name, {}};
    for (size_t kind = 0; kind < kDrops; ++kind) {
      port.counts[kind] = entry.counts[kind].load(std::memory_order_relaxed);
    }
    return port;
  };
  const base::LockGuard guard(adding_);
  std::vector<Port> ports{copy(others_)};
  for (const auto& entry : entries_) {
    ports.push_back(copy(*entry));
  }
  return ports;
}

}  // namespace ringbolt::device
