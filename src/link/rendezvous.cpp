#include "link/rendezvous.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "link/peer.h"
#include "link/peer_log.h"
#include "link/peer_process.h"
#include "link/peer_table.h"
#include "link/slot.h"

namespace ringbolt::link {
namespace {

// Bounds of one dispatch(), so that no talker starves the others.
constexpr int kMaxEvents = 64;
constexpr int kMaxAccepts = 64;
constexpr int kMaxDatagrams = 64;
/// What is still read from a peer that ended: more than a socket holds, so only a living, lying one loses anything.
constexpr int kMaxLastDatagrams = 8192;
/// How long leave() waits, in all, for peers that do not read.
constexpr uint64_t kByePatienceNs = 20'000'000;

/// What an event of the epoll set is about; the rest of the key is the id of the line or peer.
enum class Source : uint64_t { listener, bell, retry_timer, line, process };
constexpr unsigned kSourceShift = 56;
constexpr uint64_t kIdMask = (uint64_t{1} << kSourceShift) - 1;
uint64_t event_key(Source source, uint64_t id) { return (static_cast<uint64_t>(source) << kSourceShift) | id; }

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
  SlotRendezvous(const Config& config, RendezvousSink& sink);
  ~SlotRendezvous() override { leave(); }

  uint32_t slot() const override { return slot_.number(); }
  uint64_t incarnation() const override { return incarnation_; }
  std::shared_ptr<Peer> peer_at(uint32_t slot) override;
  void dispatch(int timeout_ms) override;
  void wake() override;
  void leave() override;
  void abandon_after_fork() override;

 private:
  enum class State { open, left, abandoned };
  enum class Step { again, idle, over };

  bool watch(int fd, Source source, uint64_t id);
  void serve(const epoll_event& event);
  void accept_all();
  void accept_one(base::UniqueFd fd);
  void serve_line(const std::shared_ptr<Line>& line, uint32_t events);
  Step step(const std::shared_ptr<Line>& line);
  bool handle(const std::shared_ptr<Line>& line, const Message& message, Datagram& datagram);
  bool greet(const std::shared_ptr<Line>& line, const Hello& hello, Datagram& datagram);
  void welcome(const std::shared_ptr<Line>& line);
  void make_ready(Line& line);
  void lose(const std::shared_ptr<Line>& line);
  void finish(const std::shared_ptr<ConnectedPeer>& peer);
  std::shared_ptr<Line> make_line(base::UniqueFd fd, pid_t pid);
  bool watch_peer(const ConnectedPeer& peer, const Line& line);
  void allow_access_for(pid_t pid) const;
  bool is_open() const { return state_.load(std::memory_order_acquire) == State::open; }

  RendezvousSink& sink_;
  const uint64_t incarnation_ = random_incarnation();
  const std::unique_ptr<const uint64_t> nonce_;  // peers read it where it lies
  const bool is_yama_restricted_;
  base::UniqueFd region_table_;
  base::UniqueFd epoll_;
  base::UniqueFd bell_;
  base::UniqueFd retry_timer_;
  base::UniqueFd spare_;  // given up for a moment to turn connections away when descriptors run out
  Slot slot_;
  const EncodedMessage hello_;
  const std::array<int, 2> hello_descriptors_;
  PeerLog log_;
  std::atomic<State> state_{State::open};
  std::mutex connecting_;  // one connect() at a time, so that a slot gets one peer
  PeerTable table_;
};

SlotRendezvous::SlotRendezvous(const Config& config, RendezvousSink& sink)
    : sink_(sink),
      nonce_(std::make_unique<const uint64_t>(random_u64())),
      is_yama_restricted_(yama_scope() == 1),
      region_table_(read_only_region_table(config.region_table_fd)),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      bell_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      retry_timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")),
      spare_(checked(eventfd(0, EFD_CLOEXEC), "eventfd")),
      slot_(Slot::claim(config.directory, config.slot_limit, static_cast<uint32_t>(random_u64()))),
      hello_(Hello{slot_.number(), incarnation_, reinterpret_cast<uintptr_t>(nonce_.get()), *nonce_}),
      hello_descriptors_{bell_.get(), region_table_.get()} {
  if (!watch(slot_.listening_fd(), Source::listener, 0) || !watch(bell_.get(), Source::bell, 0) ||
      !watch(retry_timer_.get(), Source::retry_timer, 0)) {
    throw base::Error(errno, "epoll_ctl", "rendezvous", "look at /proc/sys/fs/epoll/max_user_watches");
  }
}

bool SlotRendezvous::watch(int fd, Source source, uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = event_key(source, id);
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

std::shared_ptr<Peer> SlotRendezvous::peer_at(uint32_t slot) {
  if (slot >= kSlotCount || !is_open()) {
    return nullptr;
  }
  if (auto known = table_.living_at(slot)) {
    return known;
  }
  const std::lock_guard lock(connecting_);
  if (auto known = table_.living_at(slot)) {
    return known;
  }
  const auto address = socket_address(slot_.directory(), slot_.directory_fd(), slot_socket_name(slot));
  base::UniqueFd fd = address ? connect_socket(*address) : base::UniqueFd();
  if (!fd.is_open()) {
    return nullptr;
  }
  const Credentials other = peer_credentials(fd.get());
  base::UniqueFd process = other.pid > 0 ? open_process(other.pid) : base::UniqueFd();
  const bool is_dead = other.pid > 0 && !process.is_open() && errno == ESRCH;
  // A dead listener still takes connections while a forked child holds a copy of its socket.
  if (other.uid != geteuid() || is_dead) {
    return nullptr;
  }
  const std::shared_ptr<Line> line = make_line(std::move(fd), other.pid);
  line->peer = std::make_shared<ConnectedPeer>(line->id, slot, other.pid, std::move(process), line->socket);
  const std::shared_ptr<ConnectedPeer> mine = line->peer;
  allow_access_for(other.pid);
  const std::shared_ptr<ConnectedPeer> peer = table_.insert_caller(line, hello_.bytes(), hello_descriptors_);
  if (peer == mine && !watch_peer(*peer, *line)) {
    table_.remove(*line);
    table_.remove(*peer);
    peer->end();
    return nullptr;
  }
  return peer;
}

std::shared_ptr<Line> SlotRendezvous::make_line(base::UniqueFd fd, pid_t pid) {
  auto line = std::make_shared<Line>();
  line->id = table_.next_id();
  line->pid = pid;
  line->socket = std::make_shared<PeerSocket>(
      std::move(fd), Watch{epoll_.get(), event_key(Source::line, line->id), retry_timer_.get()});
  return line;
}

void SlotRendezvous::allow_access_for(pid_t pid) const {
  if (is_yama_restricted_) {
    allow_memory_access(pid);
  }
}

/// Without a pidfd (another pid namespace, an old kernel) the end of the socket alone tells of the peer's end.
bool SlotRendezvous::watch_peer(const ConnectedPeer& peer, const Line& line) {
  if (peer.process_fd() >= 0) {
    watch(peer.process_fd(), Source::process, peer.id());
  }
  return line.socket->watch();
}

void SlotRendezvous::dispatch(int timeout_ms) {
  if (!is_open()) {
    return;
  }
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kMaxEvents, timeout_ms);
  for (int i = 0; i < count && is_open(); ++i) {
    serve(events[static_cast<size_t>(i)]);
  }
}

void SlotRendezvous::serve(const epoll_event& event) {
  const uint64_t id = event.data.u64 & kIdMask;
  uint64_t ticks = 0;
  switch (static_cast<Source>(event.data.u64 >> kSourceShift)) {
    case Source::listener:
      accept_all();
      break;
    case Source::bell:
      (void)!read(bell_.get(), &ticks, sizeof ticks);
      sink_.on_bell();
      break;
    case Source::retry_timer:
      (void)!read(retry_timer_.get(), &ticks, sizeof ticks);
      for (const std::shared_ptr<Line>& line : table_.lines()) {
        line->socket->flush();
      }
      break;
    case Source::line:
      if (const std::shared_ptr<Line> line = table_.line(id)) {
        serve_line(line, event.events);
      }
      break;
    case Source::process:
      if (const std::shared_ptr<ConnectedPeer> peer = table_.peer(id)) {
        finish(peer);
      }
      break;
  }
}

void SlotRendezvous::accept_all() {
  for (int i = 0; i < kMaxAccepts; ++i) {
    base::UniqueFd fd(accept4(slot_.listening_fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.is_open()) {
      accept_one(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE) {
      // Turned away rather than left waiting: the listener would wake us again and again.
      spare_.reset();
      fd.reset(accept4(slot_.listening_fd(), nullptr, nullptr, SOCK_CLOEXEC));
      log_.dropped(slot_.number(), 0, "this process has no file descriptor left (ulimit -n)");
      fd.reset();
      spare_.reset(eventfd(0, EFD_CLOEXEC));
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

void SlotRendezvous::accept_one(base::UniqueFd fd) {
  const Credentials other = peer_credentials(fd.get());
  if (other.uid != geteuid()) {
    log_.dropped(slot_.number(), other.pid, "it belongs to another user");
    return;
  }
  const std::shared_ptr<Line> line = make_line(std::move(fd), other.pid);
  if (const std::shared_ptr<Line> dropped = table_.insert_stranger(line)) {
    log_.dropped(slot_.number(), dropped->pid, "too many connections without Hello");
    lose(dropped);
  }
  if (!line->socket->watch()) {
    lose(line);
  }
}

void SlotRendezvous::serve_line(const std::shared_ptr<Line>& line, uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    line->socket->flush();
  }
  for (int i = 0; i < kMaxDatagrams && is_open(); ++i) {
    const Step result = step(line);
    if (result == Step::over) {
      lose(line);
    }
    if (result != Step::again) {
      return;
    }
  }
}

/// Reads and delivers one message.
SlotRendezvous::Step SlotRendezvous::step(const std::shared_ptr<Line>& line) {
  Datagram datagram;
  switch (line->socket->receive(datagram)) {
    case Received::nothing:
      return Step::idle;
    case Received::end:
      return Step::over;
    case Received::oversized:
      log_.dropped(slot_.number(), line->pid, "a message or its descriptors did not fit");
      return Step::over;
    case Received::message:
      break;
  }
  const std::optional<Message> message = parse(datagram.bytes());
  if (!message || descriptor_count(*message) != datagram.descriptor_count || !handle(line, *message, datagram)) {
    log_.dropped(slot_.number(), line->pid, "it sent what is no message of this version");
    return Step::over;
  }
  return line->is_parked ? Step::idle : Step::again;
}

/// False when the message is not allowed here.
bool SlotRendezvous::handle(const std::shared_ptr<Line>& line, const Message& message, Datagram& datagram) {
  if (std::holds_alternative<Poke>(message)) {
    sink_.on_poke();
    return true;
  }
  if (const auto* hello = std::get_if<Hello>(&message)) {
    return greet(line, *hello, datagram);
  }
  if (!line->has_heard_hello) {
    return false;
  }
  if (const auto* offer = std::get_if<Offer>(&message)) {
    sink_.on_offer(line->peer, *offer, std::move(datagram.descriptors[0]));
  } else if (const auto* withdraw = std::get_if<Withdraw>(&message)) {
    sink_.on_withdraw(line->peer, *withdraw);
  } else if (const auto* arena = std::get_if<Arena>(&message)) {
    sink_.on_arena(line->peer, *arena, std::move(datagram.descriptors[0]));
  } else {
    line->peer->note_bye();
  }
  return true;
}

bool SlotRendezvous::greet(const std::shared_ptr<Line>& line, const Hello& hello, Datagram& datagram) {
  if (line->has_heard_hello) {
    return hello == line->introduction.hello;
  }
  const bool is_expected = line->peer == nullptr || line->peer->slot() == hello.slot;
  if (!is_expected || hello.incarnation == 0 || !is_bell(datagram.descriptors[0].get()) ||
      !is_read_only_file(datagram.descriptors[1].get())) {
    return false;
  }
  line->has_heard_hello = true;
  line->introduction = {hello, std::move(datagram.descriptors[0]), std::move(datagram.descriptors[1])};
  if (line->peer == nullptr) {
    // It called us. Answered before it is known whose line this is: when both sides called, each waits for this Hello.
    allow_access_for(line->pid);
    line->socket->send(hello_.bytes(), hello_descriptors_);
    welcome(line);
    return true;
  }
  make_ready(*line);
  for (const std::shared_ptr<Line>& parked : table_.parked_at(hello.slot)) {
    welcome(parked);
  }
  return true;
}

void SlotRendezvous::make_ready(Line& line) {
  Introduction handed_over{line.introduction.hello, std::move(line.introduction.bell),
                           std::move(line.introduction.region_table)};
  line.peer->become_ready(std::move(handed_over));
  sink_.on_ready(line.peer);
}

/// Finds the peer of a line that called us and said Hello.
void SlotRendezvous::welcome(const std::shared_ptr<Line>& line) {
  const uint32_t slot = line->introduction.hello.slot;
  base::UniqueFd process = line->pid > 0 ? open_process(line->pid) : base::UniqueFd();
  const auto candidate =
      std::make_shared<ConnectedPeer>(line->id, slot, line->pid, std::move(process), line->socket);
  switch (table_.seat(*line, candidate)) {
    case PeerTable::Seat::parked:
      line->socket->unwatch();
      return;
    case PeerTable::Seat::joined:
      line->introduction.bell.reset();
      line->introduction.region_table.reset();
      break;
    case PeerTable::Seat::fresh:
      if (candidate->process_fd() >= 0) {
        watch(candidate->process_fd(), Source::process, candidate->id());
      }
      make_ready(*line);
      break;
    case PeerTable::Seat::closed:
      return;
  }
  if (!line->socket->watch()) {
    lose(line);
  }
}

void SlotRendezvous::lose(const std::shared_ptr<Line>& line) {
  line->socket->end();
  table_.remove(*line);
  if (line->peer) {
    finish(line->peer);
  }
}

/// The peer's process ended or a line of it broke: delivers what it still sent, then tells of its end.
void SlotRendezvous::finish(const std::shared_ptr<ConnectedPeer>& peer) {
  for (const std::shared_ptr<Line>& line : table_.lines_of(*peer)) {
    for (int i = 0; i < kMaxLastDatagrams && step(line) == Step::again; ++i) {
    }
    line->socket->end();
    table_.remove(*line);
  }
  if (peer->is_gone() || !is_open()) {
    return;
  }
  if (peer->process_fd() >= 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer->process_fd(), nullptr);
  }
  peer->end();
  table_.remove(*peer);
  sink_.on_gone(peer);
  for (const std::shared_ptr<Line>& parked : table_.parked_at(peer->slot())) {
    welcome(parked);
  }
}

void SlotRendezvous::wake() {
  const uint64_t one = 1;
  (void)!write(bell_.get(), &one, sizeof one);
}

void SlotRendezvous::leave() {
  State expected = State::open;
  if (!state_.compare_exchange_strong(expected, State::left)) {
    return;
  }
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
  slot_.abandon_after_fork();
  table_.abandon_after_fork();
  for (base::UniqueFd* fd : {&region_table_, &epoll_, &bell_, &retry_timer_, &spare_}) {
    fd->reset();
  }
}

}  // namespace

std::unique_ptr<Rendezvous> Rendezvous::open(const Config& config, RendezvousSink& sink) {
  return std::make_unique<SlotRendezvous>(config, sink);
}

}  // namespace ringbolt::link
