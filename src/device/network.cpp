#include "device/network.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/explain.h"
#include "base/lock_guard.h"
#include "device/completion_queue.h"
#include "device/failures.h"
#include "device/inbox.h"
#include "device/limits.h"
#include "device/management.h"
#include "device/process.h"
#include "device/queue_pair.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/packet.h"

namespace ringbolt::device {
namespace {

// So that one who polls gets back to his completions: with GRO each may be 64 KiB of packets.
constexpr size_t kDatagramsAtOnce = 32;
// How long the service thread stays away while somebody polls: longer and longer.
constexpr uint64_t kFirstAbsenceNs = 20'000;
constexpr uint64_t kLastAbsenceNs = 1'000'000;
constexpr uint16_t kPkeyMask = 0x7fff;  // full and limited members differ in the top bit only

/// A datagram to nobody. Connected queue pairs hear from their own timers that nobody answers.
/// With RINGBOLT_EXPLAIN alone: a note is looked for among thousands.
void explain_unknown(const PeerNotes& notes, const wire::PacketView& view, const wire::Flow& flow) {
  const uint32_t qpn = view.headers.bth.dest_qp;
  if (!wire::is_ud(view.headers.bth.opcode)) {
    return;
  }
  const auto gone = notes.find([qpn](const PeerNotes::Note& note) {
    return note.kind == PeerNotes::Kind::queue_pair_gone && note.number == qpn && note.pid == ::getpid();
  });
  base::Incident incident;
  incident.call = "datagram";
  incident.object = fmt::format("queue pair {:#x}", qpn);
  incident.detail = "from " + source_text(view, flow);
  incident.status = "dropped";
  base::explain(incident,
                {gone ? fmt::format("there is no such queue pair any more: {}, {}", gone->text, age_text(gone->time_ns))
                      : fmt::format("process {} has no queue pair of the number {:#x}", ::getpid(), qpn),
                 "send the peer's qp_num over, and use that as remote_qpn"});
}

base::UniqueFd checked(int descriptor, const char* call) {
  if (descriptor < 0) {
    throw base::Error(errno, call, "network", "look at the limits of this process (ulimit -n)");
  }
  return base::UniqueFd(descriptor);
}

/// Hears of interfaces that go up and down, and of their addresses. Not open where the kernel has no such thing.
base::UniqueFd open_address_news() {
  base::UniqueFd news(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (news.is_open() && bind(news.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0) {
    news.reset();
  }
  return news;
}

}  // namespace

/// Completion queues that packets came for and that nobody polls: who polls another one, and took the packets from the
/// socket, brings them on. To wake the service thread for that would take a core from somebody who polls.
class Unattended {
 public:
  void add(CompletionQueue* queue) {
    const auto end = queues_.begin() + count_;
    if (queue == nullptr || std::find(queues_.begin(), end, queue) != end) {
      return;
    }
    if (end == queues_.end()) {
      has_more_ = true;
    } else {
      queues_[count_++] = queue;
    }
  }
  /// False: somebody else has to look at some of them.
  bool attend() const {
    return std::all_of(queues_.begin(), queues_.begin() + count_,
                       [](CompletionQueue* queue) { return queue->try_progress(); }) &&
           !has_more_;
  }

 private:
  // They stay as long as the caller's reading: who destroys a completion queue has destroyed its queue pairs before.
  std::array<CompletionQueue*, 4> queues_;
  uint32_t count_ = 0;
  bool has_more_ = false;
};

Network::Network(Process& process, const std::string& slots_directory, uint32_t slot)
    : process_(process),
      endpoint_(process.fabric().has_interfaces
                    ? link::UdpEndpoint::open({slots_directory, slot, kQpnIndexBits, wire::kRocePort,
                                               [&process] { process.suspect_deaths(); }})
                    : nullptr),
      streams_(process.fabric().has_streams ? std::make_unique<StreamPorts>(slot) : nullptr),
      events_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      address_news_(process_.fabric().has_interfaces ? open_address_news() : base::UniqueFd()),
      timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")),
      absence_ns_(kFirstAbsenceNs) {
  epoll_event event{};
  event.events = EPOLLIN;
  const auto refuses = [&](int descriptor) { return epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0; };
  if ((endpoint_ && refuses(endpoint_->descriptor())) || (address_news_.is_open() && refuses(address_news_.get())) ||
      (streams_ && refuses(streams_->descriptor())) ||
      epoll_ctl(events_.get(), EPOLL_CTL_ADD, timer_.get(), &event) != 0) {
    throw base::Error(errno, "epoll_ctl", "network", "look at /proc/sys/fs/epoll/max_user_watches");
  }
}

Network::~Network() = default;

bool Network::poll(uint64_t now_ns) {
  last_poll_ns_.store(now_ns, std::memory_order_relaxed);
  const Look look = receive(now_ns, false);
  return look.has_some || !look.is_alone;  // another thread may be about to hand something over
}

void Network::serve(uint64_t now_ns) {
  uint64_t expirations = 0;
  if (read(timer_.get(), &expirations, sizeof expirations) > 0) {
    is_look_due_.store(false, std::memory_order_seq_cst);
  }
  look_at_faults();
  if (streams_ && streams_->take_news()) {
    process_.look_at_ports();
  }
  if (take_address_news()) {
    process_.look_at_addresses();
  }
  const uint64_t last_poll_ns = last_poll_ns_.load(std::memory_order_relaxed);
  const bool is_polled = now_ns < last_poll_ns + CompletionQueue::kPollerNs;
  // Who is in there may need this very core to get done, and what it has not read would wake us at once.
  if (is_polled || !receive(now_ns, true).is_alone) {
    watch_sockets(false);
    absence_ns_.store(std::min(absence_ns_.load(std::memory_order_relaxed) * 2, kLastAbsenceNs),
                      std::memory_order_relaxed);
    look_soon();
    return;
  }
  absence_ns_.store(kFirstAbsenceNs, std::memory_order_relaxed);
  watch_sockets(true);
}

bool Network::take_address_news() {
  std::array<std::byte, 8192> message;  // what it says is looked up, not read: some of it may have got lost
  ssize_t got = -1;
  bool has_news = false;
  do {
    got = address_news_.is_open() ? recv(address_news_.get(), message.data(), message.size(), 0) : -1;
    has_news = has_news || got > 0 || (got < 0 && address_news_.is_open() && errno == ENOBUFS);
  } while (got > 0);
  return has_news;
}

/// Level-triggered: who polls leaves packets there for a moment, which would wake the service thread again and again.
void Network::watch_sockets(bool wanted) {
  if (is_watching_ != wanted) {
    is_watching_ = wanted;
    epoll_event event{};
    event.events = wanted ? EPOLLIN : 0U;
    if (endpoint_) {
      epoll_ctl(events_.get(), EPOLL_CTL_MOD, endpoint_->descriptor(), &event);
    }
    if (streams_) {
      epoll_ctl(events_.get(), EPOLL_CTL_MOD, streams_->descriptor(), &event);
    }
  }
}

void Network::look_soon() {
  if (is_look_due_.load(std::memory_order_relaxed) || is_look_due_.exchange(true, std::memory_order_seq_cst)) {
    return;
  }
  itimerspec when{};
  when.it_value.tv_nsec = static_cast<long>(absence_ns_.load(std::memory_order_relaxed));
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

Network::Look Network::receive(uint64_t now_ns, bool is_on_service_thread) {
  // Before anything is found, and until all that was found has been attended to.
  const QueuePairTable::Reading reading(process_.packet_targets());
  Unattended unattended;
  Look look;
  const auto sink = [&](const link::UdpEndpoint::Arrived& arrived) {
    look.has_some = true;
    take(arrived, now_ns, is_on_service_thread, unattended);
  };
  if (streams_) {
    look.is_alone = streams_->receive(now_ns, sink);
    if (streams_->has_news()) {
      look_soon();  // the service thread tells of it
    }
  }
  if (endpoint_) {
    const bool is_alone = endpoint_->receive(sink, kDatagramsAtOnce, is_on_service_thread).has_value();
    look.is_alone = is_alone && look.is_alone;
    if (endpoint_->has_late_packets(now_ns) || has_late_.load(std::memory_order_relaxed)) [[unlikely]] {
      send_late();
    }
  }
  if (!is_on_service_thread && !unattended.attend()) {  // that thread looks at all of them next
    process_.wake_service();
  }
  return look;
}

uint64_t Network::excused_until_ns(uint32_t interface_index, uint64_t now_ns) const {
  return is_stream(interface_index) ? streams_->excused_until_ns(interface_index, now_ns) : 0;
}

void Network::send_late() {
  if (!late_lock_.try_lock()) {
    return;  // another thread is at it
  }
  const base::LockGuard guard(late_lock_, base::kAdoptLock);
  if (!late_) {
    late_.emplace(*this, 0);
  }
  const auto flushed = late_->batch_.datagrams->flush();
  has_late_.store(flushed.left != 0, std::memory_order_relaxed);
  if (flushed.left == 0) {
    late_.reset();
  } else if (flushed.error != EAGAIN) {
    look_soon();  // no descriptor tells when the interface has room
  }
}

void Network::take(const link::UdpEndpoint::Arrived& arrived, uint64_t now_ns, bool is_on_service_thread,
                   Unattended& unattended) try {
  const auto drop = [&](Drop why) { drops_.count(arrived.interface_index, why); };
  // Nothing is answered to what is dropped here: its sender need not be the one that it names.
  // A stream's frames have checksums of their own.
  if (!is_stream(arrived.interface_index) && !wire::check_icrc(arrived.flow, arrived.packet, arrived.segment)) {
    return drop(Drop::bad_checksum);
  }
  const auto view = wire::parse(arrived.packet);
  if (!view) {
    return drop(Drop::unreadable);
  }
  // There is only the default partition.
  if ((view->headers.bth.pkey & kPkeyMask) != kPkeyMask) {
    return drop(Drop::foreign_partition);
  }
  const uint32_t qpn = view->headers.bth.dest_qp;
  if (qpn == wire::kGsiQpn) {
    if (!wire::is_ud(view->headers.bth.opcode) || view->headers.deth.qkey != wire::kGsiQkey ||
        view->payload.size() != wire::kMadBytes) {
      return drop(Drop::bad_management);
    }
    if (cluster::CounterPage* counters = drops_.counters_of(arrived.interface_index)) {
      const Load load = load_of(*view);
      counters->add(kSharedRcvPackets, load.packets);
      counters->add(kSharedRcvWords, load.words);
    }
    process_.management().on_network_mad(arrived.flow, 0, wire::MadIn(view->payload.data(), wire::kMadBytes));
    return;
  }
  QueuePair* const qp = process_.packet_targets().find(qpn);  // it stays: receive() reads
  if (qp == nullptr) {
    base::when_explaining([&] { explain_unknown(*process_.peer_notes(), *view, arrived.flow); });
    return drop(Drop::unknown_queue_pair);
  }
  for (CompletionQueue* const queue : qp->arrive({*view, arrived.flow, arrived.keep()}, now_ns)) {
    unattended.add(queue);
  }
  if (!is_on_service_thread) {
    look_soon();  // who took it out of the socket need not be the one who polls for it, or polls no more
  }
} catch (const std::exception&) {
  // No memory for it: as good as lost on the way. An acknowledgement that it carried may have got in, untold.
  drops_.count(arrived.interface_index, Drop::inbox_full);
  look_soon();
}

Network::Batch Network::take_batch(bool is_for_stream) {
  {
    const base::LockGuard guard(batches_lock_);
    auto& batches = batches_[is_for_stream ? 1 : 0];
    if (!batches.empty()) {
      auto batch = std::move(batches.back());
      batches.pop_back();
      return batch;
    }
  }
  if (is_for_stream) {
    return {nullptr, std::make_unique_for_overwrite<std::byte[]>(link::kMaxUdpPacketBytes)};
  }
  return {std::make_unique<link::UdpBatch>(*endpoint_), nullptr};
}

void Network::give_back(Batch batch) {
  if (batch.datagrams && !batch.datagrams->is_empty()) {
    batch.datagrams->clear();
  }
  const base::LockGuard guard(batches_lock_);
  try {
    batches_[batch.packet ? 1 : 0].push_back(std::move(batch));
  } catch (const std::bad_alloc&) {  // then it ends here: a lease gives back where nothing may throw
  }
}

std::span<std::byte> Network::Lease::make_place(size_t bytes) {
  if (batch_.packet) {
    return bytes + wire::kIcrcBytes <= link::kMaxUdpPacketBytes ? std::span(batch_.packet.get(), bytes)
                                                                : std::span<std::byte>();
  }
  untold_ = send();
  return batch_.datagrams->reserve(bytes);
}

void Network::Lease::commit(const link::UdpPath& path, size_t bytes) {
  if (batch_.packet) {
    untold_.lost_packets += network_->streams_->send(path, {batch_.packet.get(), bytes}) == 0 ? 0U : 1U;
    return;
  }
  batch_.datagrams->commit(path, bytes);
}

Network::Sent Network::Lease::send() {
  Sent sent = std::exchange(untold_, {});
  if (batch_.packet) {
    network_->streams_->flush();
    return sent;
  }
  if (batch_.datagrams->is_empty()) {
    return sent;
  }
  const auto flushed = batch_.datagrams->flush();
  sent += {flushed.refused, flushed.too_long, 0};
  if (flushed.left != 0 || waits_since_ns_ != 0) [[unlikely]] {
    const uint64_t now = base::now_ns();
    const uint64_t waited_us = waits_since_ns_ == 0 ? 0 : (now - waits_since_ns_) / 1000;
    sent.waited_us += waited_us;
    waits_since_ns_ = flushed.left == 0 ? 0 : waits_since_ns_ == 0 ? now : waits_since_ns_ + waited_us * 1000;
  }
  return sent;
}

int Network::send(const Port& port, const Mad& mad) {
  wire::Headers headers;
  headers.bth.opcode = wire::kUdSendOnly;
  headers.bth.dest_qp = wire::kGsiQpn;
  headers.bth.psn = next_mad_psn_.fetch_add(1, std::memory_order_relaxed) & wire::kPsnMask;
  headers.deth = {wire::kGsiQkey, wire::kGsiQpn};
  link::UdpPath path;
  path.source = mad.source;
  path.destination = mad.destination;
  path.interface_index = port.netdev_index;
  path.traffic_class = mad.traffic_class;
  Lease batch(*this, port.netdev_index);
  const size_t header = wire::header_bytes(headers.bth.opcode);
  const auto place = batch.reserve(header + mad.bytes.size());
  // A lease of one's own is empty, and a management datagram far shorter than a batch.
  RINGBOLT_ASSERT(!place.empty());
  wire::emit(headers, place);
  std::memcpy(place.data() + header, mad.bytes.data(), mad.bytes.size());
  const auto counters = process_.counters(port.counter_path);
  counters->add(kSharedXmitPackets);
  counters->add(kSharedXmitWords, (header + mad.bytes.size() + wire::kIcrcBytes) / 4);
  if (batch.batch_.packet) {
    const int error = streams_->send(path, place.first(header + mad.bytes.size()));
    streams_->flush();
    return error;
  }
  link::UdpBatch& datagrams = *batch.batch_.datagrams;
  datagrams.commit(path, header + mad.bytes.size());
  const auto flushed = datagrams.flush();
  datagrams.clear();
  return flushed.left != 0 ? EAGAIN : flushed.refused != 0 ? ENETUNREACH : 0;
}

void Network::abandon_after_fork() {
  if (streams_) {
    streams_->abandon_after_fork();
  }
  if (endpoint_) {
    endpoint_->abandon_after_fork();
  }
  events_.reset();
  address_news_.reset();
  timer_.reset();
}

}  // namespace ringbolt::device
