#include "rdmacm/lines.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/lock_guard.h"
#include "rdmacm/devices.h"

namespace ringbolt::rdmacm {
namespace {

// Keys of epoll: this bit and a descriptor, or the number of a line.
constexpr uint64_t kListenerKey = uint64_t{1} << 63;
constexpr uint64_t kCallLimitNs = 5'000'000'000;   // TCP tries a lost SYN again after 1, 3 s
constexpr uint64_t kHelloLimitNs = 2'000'000'000;  // strangers that say nothing take no descriptor for longer
// Without descriptors accept4() would fail at once, again and again.
constexpr uint64_t kAcceptPauseNs = 1'000'000'000;
constexpr int kBacklog = 1024;
constexpr int kEventsAtOnce = 64;
// Descriptors are the program's: of those that it may have we take one in eight at most.
constexpr uint64_t kShareOfDescriptors = 8;
constexpr uint64_t kMaxLines = 4096;

socklen_t length_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

base::UniqueFd open_tcp(const wire::Address& address) {
  const int family = wire::is_ipv4(address) ? AF_INET : AF_INET6;
  return base::UniqueFd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool bind_to(int socket, const wire::Address& local, uint32_t scope) {
  sockaddr_storage address{};
  write_address(local, 0, scope, address);
  return bind(socket, reinterpret_cast<const sockaddr*>(&address), length_of(address)) == 0;
}

/// A call to a port that nobody listens at, from this very port: TCP answers itself then.
bool is_own_echo(int socket) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t length = sizeof here;
  socklen_t other_length = sizeof there;
  auto* own = reinterpret_cast<sockaddr*>(&here);
  auto* peer = reinterpret_cast<sockaddr*>(&there);
  return getsockname(socket, own, &length) == 0 && getpeername(socket, peer, &other_length) == 0 &&
         port_of(own) == port_of(peer) && address_of(own) == address_of(peer);
}

}  // namespace

Lines::Lines(uint64_t own_token) : own_(own_token), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool Lines::watch(int fd, uint64_t key, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ||
         // Watched already, for other events.
         (errno == EEXIST && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

bool Lines::has_room() const {
  rlimit limit{};
  const bool is_known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  // Asked each time: programs change their limit. Without a known limit none: lines are a help, not a need.
  return lines_.size() < std::min<uint64_t>(is_known ? limit.rlim_cur / kShareOfDescriptors : 0, kMaxLines);
}

// 0: it can't be done just now; the peer is then not offered a line.
uint16_t Lines::listen_at(const wire::Address& local, uint32_t scope) {
  const base::LockGuard guard(mutex_);
  if (const auto known = listeners_.find({local, scope}); known != listeners_.end()) {
    return known->second.port;
  }
  Listener made{open_tcp(local), 0};
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  const int fd = made.socket.get();
  // At that address alone: others of the host must not reach it. The port is the kernel's choice.
  if (!made.socket.is_open() || !bind_to(fd, local, scope) || listen(fd, kBacklog) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0 ||
      !watch(fd, kListenerKey | static_cast<uint64_t>(fd), EPOLLIN)) {
    return 0;
  }
  made.port = port_of(reinterpret_cast<const sockaddr*>(&bound));
  return listeners_.emplace(std::pair(local, scope), std::move(made)).first->second.port;
}

void Lines::stop_listening() {
  const base::LockGuard guard(mutex_);
  listeners_.clear();
}

void Lines::expect(uint64_t token, const Place& place) {
  const base::LockGuard guard(mutex_);
  places_[token] = place;
}

void Lines::forget(uint64_t token) {
  const base::LockGuard guard(mutex_);
  places_.erase(token);
  std::erase_if(lines_, [&](const auto& entry) { return entry.second.token == token && !entry.second.is_ours; });
}

bool Lines::call(uint64_t now_ns, uint64_t token, const Place& place) {
  const base::LockGuard guard(mutex_);
  const bool has_one = std::ranges::any_of(
      lines_, [&](const auto& entry) { return entry.second.is_ours && entry.second.token == token; });
  return has_one || begin_call(now_ns, token, place, State::connecting);
}

bool Lines::begin_call(uint64_t now_ns, uint64_t token, const Place& place, State state) {
  Line line;
  line.socket = has_room() ? open_tcp(place.remote) : base::UniqueFd();
  const int fd = line.socket.get();
  if (!line.socket.is_open() || !bind_to(fd, place.local, place.scope)) {
    return false;
  }
  sockaddr_storage to{};
  write_address(place.remote, place.port, place.scope, to);
  // What a call comes to, a refusal too, is read from the socket later.
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), length_of(to)) != 0 && errno != EINPROGRESS) {
    // A refusal at once, as on the own host, is an answer to the question.
    if (errno != ECONNREFUSED || state != State::checking) {
      return false;
    }
  }
  line.state = state;
  line.is_ours = true;
  line.token = token;
  line.deadline_ns = now_ns + kCallLimitNs;
  next_deadline_ns_ = std::min(next_deadline_ns_, line.deadline_ns);
  const uint64_t key = ++last_key_;
  if (!watch(fd, key, EPOLLOUT)) {
    return false;
  }
  lines_.emplace(key, std::move(line));
  return true;
}

void Lines::drop(uint64_t token) {
  const base::LockGuard guard(mutex_);
  std::erase_if(lines_, [&](const auto& entry) {
    const Line& line = entry.second;
    if (!line.is_ours || line.token != token) {
      return false;
    }
    static_cast<void>(say(line, wire::LifelineWord::Kind::bye));
    return true;
  });
}

bool Lines::say(const Line& line, wire::LifelineWord::Kind kind) const {
  const auto bytes = wire::emit(wire::LifelineWord{kind, own_, line.token});
  // It is among the first few on its connection, so there is room for it.
  return send(line.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

void Lines::pause_accepting(uint64_t now_ns) {
  accepts_again_ns_ = now_ns + kAcceptPauseNs;
  for (const auto& [where, listener] : listeners_) {
    // Watched for nothing: only errors wake then.
    watch(listener.socket.get(), kListenerKey | static_cast<uint64_t>(listener.socket.get()), 0);
  }
}

void Lines::accept_all(const Listener& listener, uint64_t now_ns) {
  for (int i = 0; i < kEventsAtOnce; ++i) {
    const int got = accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (got < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        pause_accepting(now_ns);
      }
      return;
    }
    Line line;
    line.socket = base::UniqueFd(got);
    line.state = State::called;
    line.deadline_ns = now_ns + kHelloLimitNs;
    next_deadline_ns_ = std::min(next_deadline_ns_, line.deadline_ns);
    const uint64_t key = ++last_key_;
    // Else it is closed again, which its caller takes for a broken line.
    if (has_room() && line.socket.is_open() && watch(line.socket.get(), key, EPOLLIN)) {
      lines_.emplace(key, std::move(line));
    }
  }
}

std::vector<Lines::News> Lines::serve(uint64_t now_ns) {
  const base::LockGuard guard(mutex_);
  std::vector<News> news;
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_.is_open() ? epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, 0) : 0;
  for (int i = 0; i < count; ++i) {
    on_ready(events[static_cast<size_t>(i)].data.u64, now_ns, news);
  }
  if (next_deadline_ns_ <= now_ns) {
    end_late(now_ns, news);
  }
  if (accepts_again_ns_ <= now_ns) {
    accepts_again_ns_ = UINT64_MAX;
    for (const auto& [where, listener] : listeners_) {
      watch(listener.socket.get(), kListenerKey | static_cast<uint64_t>(listener.socket.get()), EPOLLIN);
    }
  }
  return news;
}

uint64_t Lines::next_deadline_ns() const {
  const base::LockGuard guard(mutex_);
  return std::min(accepts_again_ns_, next_deadline_ns_);
}

size_t Lines::standing() const {
  const base::LockGuard guard(mutex_);
  return static_cast<size_t>(
      std::ranges::count_if(lines_, [](const auto& entry) { return entry.second.state == State::stands; }));
}

void Lines::end_late(uint64_t now_ns, std::vector<News>& news) {
  // Found anew from those that stay.
  next_deadline_ns_ = UINT64_MAX;
  std::erase_if(lines_, [&](const auto& entry) RINGBOLT_REQUIRES(mutex_) {
    const Line& line = entry.second;
    const bool is_late = line.deadline_ns <= now_ns;
    // A stranger that has not said who it is goes without a word.
    if (is_late && line.is_ours) {
      news.push_back({News::Kind::broken, line.token});
    } else if (!is_late) {
      next_deadline_ns_ = std::min(next_deadline_ns_, line.deadline_ns);
    }
    return is_late;
  });
}

void Lines::on_ready(uint64_t key, uint64_t now_ns, std::vector<News>& news) {
  // Several listeners may have gone since epoll_wait(): the descriptor is looked for.
  if ((key & kListenerKey) != 0) {
    const auto found = std::ranges::find_if(listeners_, [&](const auto& entry) {
      return static_cast<uint64_t>(entry.second.socket.get()) == (key & ~kListenerKey);
    });
    if (found != listeners_.end()) {
      accept_all(found->second, now_ns);
    }
    return;
  }
  const auto found = lines_.find(key);
  if (found == lines_.end()) {
    return;  // an earlier event of this batch was its end
  }
  Line& line = found->second;
  Verdict verdict;
  bool goes_on = false;
  if (line.state == State::checking) {
    int error = 0;
    socklen_t length = sizeof error;
    // 0, the process has answered, so it lives: the line was broken by somebody else. Reading it resets it
    // (socket(7)): once for each call.
    getsockopt(line.socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    verdict = error == ECONNREFUSED ? News::Kind::dead : News::Kind::broken;
  } else if (line.state == State::connecting) {
    goes_on = on_connected(line) && watch(line.socket.get(), key, EPOLLIN);
    verdict = goes_on ? Verdict() : News::Kind::broken;
  } else {
    goes_on = read(line, now_ns, verdict);
  }
  if (verdict && line.token != 0) {
    news.push_back({*verdict, line.token});
  }
  if (!goes_on) {
    lines_.erase(key);
  }
}

// False: the call has failed.
bool Lines::on_connected(Line& line) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(line.socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0 ||
      is_own_echo(line.socket.get())) {
    return false;
  }
  line.state = State::greeting;
  return say(line, wire::LifelineWord::Kind::hello);
}

// False: the line is over; `verdict` says what is to be told of it, if anything.
bool Lines::read(Line& line, uint64_t now_ns, Verdict& verdict) {
  for (;;) {
    const ssize_t got = recv(line.socket.get(), line.word.data() + line.bytes, line.word.size() - line.bytes, 0);
    if (got > 0) {
      line.bytes += static_cast<size_t>(got);
      if (line.bytes == line.word.size() && !on_word(line, verdict)) {
        return false;
      }
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return true;
    }
    const bool stood = line.state == State::stands;
    verdict = stood && got == 0 ? News::Kind::dead : News::Kind::broken;
    if (stood && got < 0 && errno == ECONNRESET) {
      // A kernel resets what its process dies without having read, but so does who closes others' connections
      // (ss -K). Only the listener tells: it is open as long as the process has not ended.
      const auto place = places_.find(line.token);
      if (place != places_.end() && begin_call(now_ns, line.token, place->second, State::checking)) {
        verdict.reset();
      }
    }
    return false;
  }
}

// A word that is not expected in this state ends the line: the other end is not of our kind.
bool Lines::on_word(Line& line, Verdict& verdict) {
  line.bytes = 0;
  const auto word = wire::parse_lifeline_word(line.word);
  // A process that has our peer's old port, or a stranger.
  if (!word || word->receiver != own_) {
    verdict = News::Kind::broken;
    return false;
  }
  switch (word->kind) {
    case wire::LifelineWord::Kind::hello:
      // Only from whom we told our port, in answer to an offer with this token.
      if (line.state != State::called || !places_.contains(word->sender)) {
        return false;
      }
      line.token = word->sender;
      line.state = State::stands;
      line.deadline_ns = UINT64_MAX;
      return say(line, wire::LifelineWord::Kind::welcome);
    case wire::LifelineWord::Kind::welcome:
      if (line.state != State::greeting || word->sender != line.token) {
        verdict = News::Kind::broken;
        return false;
      }
      line.state = State::stands;
      line.deadline_ns = UINT64_MAX;
      return true;
    case wire::LifelineWord::Kind::bye:
      verdict = News::Kind::broken;  // whoever of us needs a line makes another
      return false;
  }
  return false;
}

// In the child, with the lock that before_fork() has taken; after_fork() gives it back.
void Lines::abandon_after_fork() {
  // close() of an inherited descriptor sends no FIN as long as the parent has it.
  lines_.clear();
  listeners_.clear();
  epoll_.reset();
}

}  // namespace ringbolt::rdmacm
