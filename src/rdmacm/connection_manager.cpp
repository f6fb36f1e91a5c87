#include "rdmacm/connection_manager.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <random>

#include "base/clock.h"
#include "base/start_thread.h"
#include "rdmacm/events.h"

namespace ringbolt::rdmacm {
namespace {

constexpr uint64_t kMillisecondNs = 1'000'000;
// How soon what the network could not take is tried again.
constexpr uint64_t kUnsentPauseNs = kMillisecondNs;
// How often the thread looks whether a program has read what keeps an event back.
constexpr uint64_t kHeldPauseNs = kMillisecondNs;
// A program that polls for what has come may be without a processor for hundreds of milliseconds on a busy machine, and
// UCX's examples drop the rest once they hear of the end. Who leaves it unread for good hears of the end so much later.
constexpr uint64_t kHeldLimitNs = 1000 * kMillisecondNs;
// An answer that the peer sent before it ended the connection, but by way of another core.
constexpr uint64_t kAnswerLimitNs = 10 * kMillisecondNs;
// Programs poll the completion first and act on it before they look at the event that was in the same batch.
constexpr uint64_t kReadPauseNs = 2 * kMillisecondNs;
// What the exit of a program may take longer for our sake.
constexpr uint64_t kLeaveLimitNs = 200 * kMillisecondNs;
constexpr uint16_t kFirstEphemeral = 32768;
constexpr uint16_t kEphemeralCount = 28232;  // as Linux by default: up to 60999

// Released by who makes one, acquired by who finds it; null again in a forked child.
std::atomic<ConnectionManager*> current{nullptr};

ringbolt_mad mad_of(const cm::Outgoing& out) {
  ringbolt_mad mad{};
  std::memcpy(mad.source_gid, out.path.local.data(), sizeof mad.source_gid);
  std::memcpy(mad.destination_gid, out.path.remote.data(), sizeof mad.destination_gid);
  mad.flow_label = out.path.flow_label;
  mad.traffic_class = out.path.traffic_class;
  mad.hop_limit = out.path.hop_limit;
  std::memcpy(mad.bytes, out.bytes.data(), sizeof mad.bytes);
  return mad;
}

}  // namespace

ConnectionManager& ConnectionManager::get() {
  // Registered once: the child inherits them.
  static std::once_flag handlers;
  std::call_once(handlers, [] { pthread_atfork(before_fork, in_parent, in_child); });
  ConnectionManager* known = current.load(std::memory_order_acquire);
  if (known == nullptr) {
    auto* made = new ConnectionManager;
    // Two threads may make one at the same time; nothing has been opened by either yet.
    if (current.compare_exchange_strong(known, made)) {
      return *made;
    }
    delete made;
  }
  return *known;
}

/// Nobody is just making a line that the child would not know of, and so not close.
void ConnectionManager::before_fork() {
  ConnectionManager* manager = current.load();
  if (Lines* lines = manager == nullptr ? nullptr : manager->lines_.load()) {
    lines->before_fork();
  }
}

void ConnectionManager::in_parent() {
  ConnectionManager* manager = current.load();
  if (Lines* lines = manager == nullptr ? nullptr : manager->lines_.load()) {
    lines->after_fork();
  }
}

/// The thread did not come along, and what the devices hold is the parent's; so is the lock, which another thread may
/// hold just now. The next call makes a new manager.
void ConnectionManager::in_child() {
  if (ConnectionManager* manager = current.exchange(nullptr)) {
    // Its memory stays: identifiers of the parent point to it.
    manager->is_dead_.store(true);
    if (Lines* lines = manager->lines_.load()) {
      lines->abandon_after_fork();
      lines->after_fork();
    }
  }
}

uint64_t ConnectionManager::now() const { return base::now_ns(); }

int ConnectionManager::start() {
  if (is_started_) {
    devices_.look_at_gids();
    return 0;
  }
  if (const int error = devices_.size() == 0 ? devices_.open() : 0) {
    return error;
  }
  ibv_context* context = devices_.at(0).context;
  // Takes the process' queue pair 1; a second time does nothing.
  if (const int error = ringbolt_management_open(context)) {
    return error;
  }
  bell_ = base::UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_.is_open()) {
    return errno;
  }
  std::random_device random;
  // Random, so that ids of a process that had the slot before do not fit ours.
  engine_.reset(new cm::Engine({ringbolt_management_slot(context), random()}, *this));
  // Names this process among those of other hosts; 2^64 make collisions no concern.
  const uint64_t token = uint64_t{random()} << 32 | random();
  lifelines_ = std::make_unique<cm::Lifelines>(
      token, [this](const cm::Path& path) RINGBOLT_REQUIRES(manager_lock) { return line_port(path); });
  auto lines = std::make_unique<Lines>(token);
  thread_ = base::start_thread([this] { run(); });  // waits for our lock
  // Last, since it stays for good: a call that has failed is made again.
  lines_.store(lines.release());
  is_started_ = true;
  return 0;
}

bool ConnectionManager::routes_back(uint32_t port, const wire::Address& local, const wire::Address& remote) const {
  Route route;
  const Device& device = devices_.at(port);
  // Ports in memory have no routes: whoever reaches them is reached by them.
  if (device.facts.takes_any_local_address != 0 || is_loopback(remote)) {
    return true;
  }
  return devices_.route(local, remote, device.facts.netdev_index, route) == 0 && route.device == port;
}

void ConnectionManager::run() {
  // 15 bytes at most.
  prctl(PR_SET_NAME, "ringbolt-cm");
  int management = -1;
  int lines = -1;
  {
    const base::LockGuard guard(mutex());
    // These descriptors stay open as long as the process.
    management = ringbolt_management_descriptor(devices_.at(0).context);
    lines = lines_.load()->descriptor();
  }
  for (;;) {
    uint64_t wait_ns = 0;
    bool is_timed = false;
    {
      const base::LockGuard guard(mutex());
      try {
        receive_all();
        engine_->on_timer(now());
        look_at_lines();
      } catch (const std::bad_alloc&) {
        // As good as lost on the way: the state machines try again.
      }
      settle();
      const uint64_t now_ns = now();
      release_held(now_ns);
      wakes_at_ns_ = next_wake_ns(now_ns);
      // settle() rings the bell if another thread brings the time forward.
      is_timed = wakes_at_ns_ != UINT64_MAX;
      wait_ns = is_timed && wakes_at_ns_ > now_ns ? wakes_at_ns_ - now_ns : 0;
    }
    pollfd descriptors[] = {{management, POLLIN, 0}, {bell_.get(), POLLIN, 0}, {lines, POLLIN, 0}};
    const timespec timeout{static_cast<time_t>(wait_ns / 1'000'000'000), static_cast<long>(wait_ns % 1'000'000'000)};
    // Without the lock, as the only place where this thread waits.
    ppoll(descriptors, 3, is_timed ? &timeout : nullptr, nullptr);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(bell_.get(), &count, sizeof count);
  }
}

uint64_t ConnectionManager::next_wake_ns(uint64_t now_ns) const {
  uint64_t next =
      std::min({engine_->next_deadline_ns(), lifelines_->next_deadline_ns(), lines_.load()->next_deadline_ns()});
  if (!held_.empty() || next_untold_ < untold_.size()) {
    next = std::min(next, now_ns + kHeldPauseNs);
  }
  if (ringbolt_management_unsent(devices_.at(0).context) != 0) {
    next = std::min(next, now_ns + kUnsentPauseNs);
  }
  return next;
}

void ConnectionManager::receive_all() {
  ringbolt_mad notice;
  // Bounded, so that a flood of datagrams leaves the lock to the program now and then.
  constexpr int kBatch = 256;
  devices_.look_at_gids();
  for (int i = 0; i < kBatch && ringbolt_management_receive(devices_.at(0).context, &notice) != 0; ++i) {
    if (notice.kind == RINGBOLT_NOTICE_PEER_GONE) {
      engine_->on_peer_gone(now(), notice.peer_slot);
    } else {
      cm::Arrival arrival;
      std::memcpy(arrival.path.local.data(), notice.destination_gid, arrival.path.local.size());
      std::memcpy(arrival.path.remote.data(), notice.source_gid, arrival.path.remote.size());
      arrival.path.traffic_class = notice.traffic_class;
      arrival.peer_slot = notice.peer_slot;
      std::memcpy(arrival.bytes.data(), notice.bytes, arrival.bytes.size());
      const auto device = devices_.owner_of(arrival.path.local);
      if (device) {
        arrival.path.port = *device;
        if (!lifelines_->receive(now(), arrival)) {
          engine_->receive(now(), arrival);
        }
      }
    }
    // After each: what came next may be about what this one has brought forth.
    settle();
  }
}

void ConnectionManager::catch_up() {
  try {
    receive_all();
  } catch (const std::bad_alloc&) {
    // As good as lost on the way.
  }
}

void ConnectionManager::settle() {
  if (!is_started_) {
    return;
  }
  try {
    send_outgoing();
    tell_all();
    send_outgoing();
    settle_lifelines();
  } catch (const std::bad_alloc&) {
    // Datagrams are as good as lost on the way; events are told by the thread, soon: next_wake_ns().
  }
  changed_.notify_all();
  // Our own thread looks at the time before it sleeps.
  if (thread_.get_id() != std::this_thread::get_id() && next_wake_ns(now()) < wakes_at_ns_) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(bell_.get(), &one, sizeof one);
  }
}

void ConnectionManager::tell_all() {
  do {
    for (; next_untold_ < untold_.size(); ++next_untold_) {
      tell(untold_[next_untold_]);
    }
    untold_ = engine_->take_events();
    next_untold_ = 0;
  } while (!untold_.empty());
}

void ConnectionManager::send_outgoing() { send(engine_->take_outgoing()); }

void ConnectionManager::send(const std::vector<cm::Outgoing>& all) {
  for (const cm::Outgoing& out : all) {
    const ringbolt_mad mad = mad_of(out);
    // What is not sent is as good as lost on the way: the state machines try again.
    static_cast<void>(ringbolt_management_send(devices_.at(out.path.port).context, &mad));
  }
}

/// A program may tear all down when it hears of the end, and then what came before it must be there: data, and answers
/// that say which of its sends have arrived. An answer can lie unread still, or be just behind on another core's way.
ConnectionManager::Owed ConnectionManager::owes_completions(const Id& id) const {
  const uint32_t qpn = id.is_passive ? id.reply.local_qpn : id.request.local_qpn;
  ibv_context* context = devices_.at(id.route->device).context;
  ringbolt_management_take_arrived(context, qpn);
  if (ringbolt_management_has_unread(context, qpn) != 0) {
    return Owed::polling;
  }
  return ringbolt_management_awaits_answers(context, qpn) != 0 ? Owed::answers : Owed::nothing;
}

void ConnectionManager::tell(const cm::Event& event) {
  if (event.kind == cm::Event::Kind::request || event.kind == cm::Event::Kind::lookup) {
    tell_request(event);
    return;
  }
  const auto found = connections_.find(event.handle);
  if (found == connections_.end()) {
    return;
  }
  Id& id = *found->second;
  if (is_swallowed(id, event)) {
    return;
  }
  auto queued = make_event(id, event);
  const bool ends_connection =
      event.kind == cm::Event::Kind::disconnected || (event.kind == cm::Event::Kind::rejected && id.has_reply);
  if (ends_connection && id.route && !id.is_datagram()) {
    if (const Owed owed = owes_completions(id); owed != Owed::nothing) {
      const uint64_t now_ns = now();
      // First without the event: should there be no memory, it is told again by the thread, and not lost.
      held_.push_back({&id, nullptr, now_ns + kHeldLimitNs, now_ns + kAnswerLimitNs, 0});
      held_.back().event = std::move(queued);
      return;
    }
  }
  id.channel().push(std::move(queued));
}

void ConnectionManager::tell_request(const cm::Event& event) {
  const auto found = listeners_.find(event.listener);
  if (found == listeners_.end() || found->second->channel().is_closed) {
    // The listener has gone since, or nobody will ever take its events: the peer is refused.
    engine_->destroy(now(), event.handle);
    return;
  }
  found->second->channel().push(make_request(*this, *found->second, event));
}

void ConnectionManager::release_held(uint64_t now_ns) {
  std::erase_if(held_, [&](Held& held) RINGBOLT_REQUIRES(manager_lock) {
    const Owed owed = owes_completions(*held.id);
    if (owed == Owed::polling) {
      held.answers_until_ns = now_ns + kAnswerLimitNs;  // what was read may have been what kept others from coming
    }
    if (owed != Owed::nothing) {
      held.read_since_ns = 0;
    } else if (held.read_since_ns == 0) {
      held.read_since_ns = now_ns;
    }
    // A killed peer answers no more: who keeps sending and reads all that comes need not wait as long as one who may
    // not have read.
    const uint64_t until_ns = owed == Owed::answers ? std::min(held.until_ns, held.answers_until_ns) : held.until_ns;
    if (now_ns < until_ns && (held.read_since_ns == 0 || now_ns < held.read_since_ns + kReadPauseNs)) {
      return false;
    }
    held.id->channel().push(std::move(held.event));
    return true;
  });
}

void ConnectionManager::drop_held(const Id& id) {
  std::erase_if(held_, [&](const Held& held) { return held.id == &id; });
}

void ConnectionManager::retire(std::unique_ptr<Channel> channel) {
  retired_[next_retired_++ % retired_.size()] = std::move(channel);
}

uint16_t ConnectionManager::take_ephemeral_port(uint16_t port_space) {
  // A random start, so that programs that begin one after the other do not meet in the same numbers.
  static thread_local std::minstd_rand random{std::random_device{}()};
  const auto start = static_cast<uint32_t>(random() % kEphemeralCount);
  for (uint32_t i = 0; i < kEphemeralCount; ++i) {
    const auto port = static_cast<uint16_t>(kFirstEphemeral + (start + i) % kEphemeralCount);
    if (!ports_.contains({port_space, port})) {
      take_port(port_space, port);
      return port;
    }
  }
  return 0;
}

void ConnectionManager::release_port(uint16_t port_space, uint16_t port) {
  const auto found = ports_.find({port_space, port});
  if (found != ports_.end() && --found->second == 0) {
    ports_.erase(found);
  }
}

void ConnectionManager::leave() {
  const base::LockGuard guard(mutex());
  if (!is_started_ || has_left_) {
    return;
  }
  has_left_ = true;
  // A peer's DREQ that lies unread would be answered by nobody.
  catch_up();
  const uint64_t deadline = now() + kLeaveLimitNs;
  const auto is_done = [&]() RINGBOLT_REQUIRES(manager_lock) {
    return engine_->disconnecting() == 0 && ringbolt_management_unsent(devices_.at(0).context) == 0;
  };
  while (!is_done() && now() < deadline) {
    changed_.wait_for(mutex(), std::chrono::milliseconds(1));
  }
  for (const auto& [handle, id] : connections_) {
    // Sends what tells the peer, and waits for no answer.
    engine_->destroy(now(), handle);
  }
  send_outgoing();
}

namespace {

// After main() and the program's own destructors that were registered later; its threads may still run.
__attribute__((destructor)) void at_exit() {
  if (ConnectionManager* manager = current.load()) {
    manager->leave();
  }
}

}  // namespace
}  // namespace ringbolt::rdmacm
