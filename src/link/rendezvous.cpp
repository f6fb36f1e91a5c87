#include "link/rendezvous.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/process_descriptor.h"
#include "link/peer.h"
#include "link/peer_events.h"
#include "link/peer_lines.h"
#include "link/peer_process.h"
#include "link/peer_table.h"
#include "link/slot.h"

namespace ringbolt::link {
namespace {

// Bounds of one dispatch(), so that no talker starves the others.
constexpr int kMaxEvents = 64;
constexpr int kMaxAccepts = 64;
/// How long leave() waits, in all, for peers that do not read.
constexpr uint64_t kByePatienceNs = 20'000'000;

uint64_t random_u64() {
  uint64_t value = 0;
  if (getentropy(&value, sizeof value) != 0) {
    throw base::Error(errno, "getentropy", "random numbers");
  }
  return value;
}

base::UniqueFd checked(int fd, const char* call) {
  if (fd < 0) {
    throw base::Error(errno, call, "rendezvous", "look at the limits of this process (ulimit -n)");
  }
  return base::UniqueFd(fd);
}

base::UniqueFd read_only_region_table(int fd) {
  base::UniqueFd table = reopen_read_only(fd);
  if (!table.is_open()) {
    throw base::Error(errno, "open read-only through /proc/self/fd", "region table", "is /proc mounted?");
  }
  return table;
}

/// Never 0, which stands for a peer whose Hello did not come.
uint64_t random_incarnation() {
  uint64_t value = 0;
  while (value == 0) {
    value = random_u64();
  }
  return value;
}

class SlotRendezvous final : public Rendezvous {
 public:
  SlotRendezvous(const Options& options, RendezvousSink& sink);
  ~SlotRendezvous() override { leave(); }

  uint32_t slot() const override { return slot_.number(); }
  uint64_t incarnation() const override { return incarnation_; }
  std::shared_ptr<Peer> peer_at(uint32_t slot) override RINGBOLT_EXCLUDES(connecting_);
  void dispatch(int timeout_ms) override;
  bool has_pending() const override { return events_.has_pending() || table_.has_parked(); }
  void wake() override;
  bool watch(int descriptor) override { return events_.add(descriptor, Source::watched, 0); }
  void unwatch(int descriptor) override { events_.remove(descriptor); }
  void leave() override;
  void abandon_after_fork() override;

 private:
  enum class State { open, left, abandoned };

  void serve(const epoll_event& event);
  void accept_all();
  bool watch_peer(const ConnectedPeer& peer, const Line& line);
  bool is_open() const { return state_.load(std::memory_order_acquire) == State::open; }

  RendezvousSink& sink_;
  const uint64_t incarnation_ = random_incarnation();
  const std::unique_ptr<const uint64_t> nonce_;  // peers read it where it lies
  base::UniqueFd region_table_;
  base::UniqueFd bell_;
  base::UniqueFd spare_;  // given up for a moment to turn connections away when descriptors run out
  Slot slot_;
  PeerEvents events_;
  PeerTable table_;
  const Greeting greeting_;
  PeerLines lines_;
  // Held over a connect() and what goes with it: about kConnectPatienceMs at most.
  base::Mutex connecting_;  // one connect() at a time, so that a slot gets one peer
  std::atomic<State> state_{State::open};
};

SlotRendezvous::SlotRendezvous(const Options& options, RendezvousSink& sink)
    : sink_(sink),
      nonce_(std::make_unique<const uint64_t>(random_u64())),
      region_table_(read_only_region_table(options.region_table_fd)),
      bell_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      spare_(checked(eventfd(0, EFD_CLOEXEC), "eventfd")),
      slot_(Slot::claim(options.directory, options.slot_limit, static_cast<uint32_t>(random_u64()))),
      greeting_{EncodedMessage(Hello{slot_.number(), incarnation_, reinterpret_cast<uintptr_t>(nonce_.get()), *nonce_}),
                {bell_.get(), region_table_.get(), options.wake_table_fd},
                yama_scope() == 1},
      lines_(sink_, table_, events_, greeting_, slot_.number()) {
  if (!events_.add(slot_.listening_fd(), Source::listener, 0) || !events_.add(bell_.get(), Source::bell, 0)) {
    throw base::Error(errno, "epoll_ctl", "rendezvous", "look at /proc/sys/fs/epoll/max_user_watches");
  }
}

std::shared_ptr<Peer> SlotRendezvous::peer_at(uint32_t slot) {
  if (slot >= kSlotCount || !is_open()) {
    return nullptr;
  }
  if (auto known = table_.living_at(slot)) {
    return known;
  }
  const base::LockGuard lock(connecting_);
  if (auto known = table_.living_at(slot)) {
    return known;
  }
  const auto address = socket_address(slot_.directory(), slot_.directory_fd(), slot_socket_name(slot));
  base::UniqueFd fd = address ? connect_socket(*address) : base::UniqueFd();
  if (!fd.is_open()) {
    return nullptr;
  }
  const Credentials other = peer_credentials(fd.get());
  base::UniqueFd process = other.pid > 0 ? base::open_process(other.pid) : base::UniqueFd();
  const bool is_dead = other.pid > 0 && !process.is_open() && errno == ESRCH;
  // A dead listener still takes connections while a forked child holds a copy of its socket.
  // SO_PEERCRED (unix(7)): as of the listen() of whoever answers. Folders keep others out already.
  if (other.uid != geteuid() || is_dead) {
    return nullptr;
  }
  const std::shared_ptr<Line> line = make_line(std::move(fd), other.pid, table_, events_);
  line->peer = std::make_shared<ConnectedPeer>(line->id, slot, other.pid, std::move(process), line->socket);
  const std::shared_ptr<ConnectedPeer> mine = line->peer;
  greeting_.allow_access_for(other.pid);
  const std::shared_ptr<ConnectedPeer> peer =
      table_.insert_caller(line, greeting_.hello.bytes(), greeting_.descriptors);
  if (peer == mine && !watch_peer(*peer, *line)) {
    table_.remove(*line);
    table_.remove(*peer);
    peer->end();
    return nullptr;
  }
  return peer;
}

/// Without a pidfd (another pid namespace, an old kernel) the end of the socket alone tells of the peer's end.
bool SlotRendezvous::watch_peer(const ConnectedPeer& peer, const Line& line) {
  if (peer.process_fd() >= 0) {
    events_.add(peer.process_fd(), Source::process, peer.id());
  }
  return line.socket->watch();
}

void SlotRendezvous::dispatch(int timeout_ms) {
  if (!is_open()) {
    return;
  }
  std::array<epoll_event, kMaxEvents> events;
  const size_t count = events_.wait(events, timeout_ms);
  for (size_t i = 0; i < count && is_open(); ++i) {
    serve(events[i]);
  }
}

void SlotRendezvous::serve(const epoll_event& event) {
  uint64_t rings = 0;
  switch (PeerEvents::source_of(event)) {
    case Source::listener:
      accept_all();
      break;
    case Source::bell:
      (void)!read(bell_.get(), &rings, sizeof rings);
      sink_.on_bell();
      break;
    case Source::retry_timer:
      events_.acknowledge_retry();
      lines_.retry();
      break;
    case Source::line:
      lines_.serve(PeerEvents::id_of(event), event.events);
      break;
    case Source::process:
      lines_.bury(PeerEvents::id_of(event));
      break;
    case Source::watched:
      sink_.on_readable();
      break;
  }
}

void SlotRendezvous::accept_all() {
  for (int i = 0; i < kMaxAccepts; ++i) {
    base::UniqueFd fd(accept4(slot_.listening_fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.is_open()) {
      lines_.take(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE) {
      // Turned away rather than left waiting: the listener would wake us again and again.
      // One descriptor is free then: the caller is taken, told nothing, and let go.
      spare_.reset();
      fd.reset(accept4(slot_.listening_fd(), nullptr, nullptr, SOCK_CLOEXEC));
      lines_.note_refusal(0, "this process has no file descriptor left (ulimit -n)");
      fd.reset();
      spare_.reset(eventfd(0, EFD_CLOEXEC));
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

void SlotRendezvous::wake() {
  const uint64_t one = 1;
  (void)!write(bell_.get(), &one, sizeof one);
}

// Frees the slot before it says so: who hears of it finds nobody there.
void SlotRendezvous::leave() {
  State expected = State::open;
  if (!state_.compare_exchange_strong(expected, State::left)) {
    return;
  }
  lines_.stop();
  slot_.release();
  const PeerTable::Content content = table_.close();
  const uint64_t deadline_ns = base::now_ns() + kByePatienceNs;
  for (const auto& [id, peer] : content.peers) {
    peer->say_bye(deadline_ns);
  }
  for (const auto& [id, line] : content.lines) {
    line->socket->end();
  }
  for (const auto& [id, peer] : content.peers) {
    peer->end();
  }
  wake();
}

void SlotRendezvous::abandon_after_fork() {
  state_.store(State::abandoned, std::memory_order_release);
  lines_.stop();
  slot_.abandon_after_fork();
  table_.abandon_after_fork();
  events_.abandon_after_fork();
  for (base::UniqueFd* fd : {&region_table_, &bell_, &spare_}) {
    fd->reset();
  }
}

}  // namespace

std::unique_ptr<Rendezvous> Rendezvous::open(const Options& options, RendezvousSink& sink) {
  return std::make_unique<SlotRendezvous>(options, sink);
}

}  // namespace ringbolt::link
