#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/error.h"
#include "base/say.h"
#include "base/start_thread.h"
#include "base/unique_fd.h"
#include "bridge/pair.h"
#include "bridge/remarks.h"
#include "bridge/sockets.h"
#include "commands.h"
#include "failure.h"
#include "scrape_server.h"

namespace ringbolt::tools::bridge {
namespace {

/// Serves what a bridge has counted over HTTP, at /metrics, from a thread of its own: a reader who dawdles holds up no
/// connection. The text is made by the bridge's thread, which is asked for it. Thread-safe but for its end.
/// Owns the listening socket and the thread. `ask` must be thread-safe, and good until this is gone.
class PageThread {
 public:
  /// `where`: ADDRESS:PORT, or the path of a UNIX socket. `ask`: has the bridge's thread call answer(). Throws
  /// UsageError, base::Error.
  PageThread(const std::string& where, std::function<void()> ask);
  ~PageThread();
  PageThread(const PageThread&) = delete;
  PageThread& operator=(const PageThread&) = delete;

  /// "http://127.0.0.1:9316/metrics", "unix:/run/x.sock".
  const std::string& text() const { return text_; }
  bool is_asked();
  void answer(std::string page);

 private:
  int listen(const std::string& where);
  Page page(const std::function<void()>& ask);

  base::Mutex mutex_;
  base::Condition answered_;
  std::string page_ RINGBOLT_GUARDED_BY(mutex_);
  bool is_asked_ RINGBOLT_GUARDED_BY(mutex_) = false;
  std::optional<ListeningSocket> unix_socket_;
  base::UniqueFd tcp_socket_;
  base::UniqueFd end_;
  std::string text_;
  std::thread thread_;
};

// Below the ten seconds that Prometheus gives a page (scrape_timeout).
constexpr std::chrono::seconds kPagePatience{8};

PageThread::PageThread(const std::string& where, std::function<void()> ask)
    : end_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!end_.is_open()) {
    throw base::Error(errno, "eventfd", "--stats " + where, "look at the limit of open files (ulimit -n)");
  }
  const int listener = listen(where);
  thread_ = base::start_thread([this, listener, ask = std::move(ask)] {
    try {
      serve_pages(listener, end_.get(), [&] { return page(ask); });
    } catch (const std::exception& error) {
      base::say(fmt::format("ringbolt bridge: --stats: {}; connections go on\n", error.what()));
    }
  });
}

/// On the page's thread; blocks for kPagePatience at most.
Page PageThread::page(const std::function<void()>& ask) {
  {
    const base::LockGuard lock(mutex_);
    is_asked_ = true;
  }
  ask();
  const base::LockGuard lock(mutex_);
  const bool is_told =
      answered_.wait_for(mutex_, kPagePatience, [this]() RINGBOLT_REQUIRES(mutex_) { return !is_asked_; });
  return is_told ? Page{true, page_} : Page{false, "the bridge does not answer\n"};
}

PageThread::~PageThread() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(end_.get(), &one, sizeof one);
  // Should the page just wait for one.
  answer({});
  thread_.join();
}

int PageThread::listen(const std::string& where) {
  if (where.find('/') != std::string::npos) {
    unix_socket_.emplace("--stats", parse_place("--stats", "unix:" + where));
    text_ = "unix:" + where;
    return unix_socket_->fd();
  }
  tcp_socket_ = listen_for_pages("--stats", where);
  text_ = page_address(tcp_socket_.get());
  return tcp_socket_.get();
}

bool PageThread::is_asked() {
  const base::LockGuard lock(mutex_);
  return is_asked_;
}

void PageThread::answer(std::string page) {
  const base::LockGuard lock(mutex_);
  page_ = std::move(page);
  is_asked_ = false;
  answered_.notify_all();
}

}  // namespace
}  // namespace ringbolt::tools::bridge

namespace ringbolt::tools {
namespace bridge {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kBuryNs = 2'000'000;        // of one round: who waits for an event waits no longer
constexpr uint64_t kEndingNs = 3'000'000'000;  // for what is under way when the time to drain is over

/// Everything that listens for more than this machine or the fabric wants the word.
/// Throws UsageError; base::Error for a name that nobody knows.
void check_listen(const Place& place, bool listens_anywhere) {
  if (place.kind == Place::Kind::unix_socket || listens_anywhere) {
    return;
  }
  const stream::Address address = addresses_of(place).front();
  const auto bytes = address.bytes();
  const bool is_any =
      std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; }) ||
      (!address.is_ipv6() && std::all_of(bytes.begin() + 12, bytes.end(), [](uint8_t b) { return b == 0; }));
  if (place.kind == Place::Kind::rdma && is_any) {
    throw UsageError(
        fmt::format("--listen {}: that is every device of this machine; name the address of one, or add "
                    "--listen-anywhere",
                    place.text()));
  }
  const bool is_loopback =
      address.is_ipv6() ? std::count(bytes.begin(), bytes.end() - 1, 0) == 15 && bytes[15] == 1 : bytes[12] == 127;
  if (place.kind == Place::Kind::tcp && !is_loopback) {
    throw UsageError(
        fmt::format("--listen {}: programs of other machines could come through here to the fabric; "
                    "listen at 127.0.0.1 or unix:PATH, or add --listen-anywhere",
                    place.text()));
  }
}

std::vector<std::unique_ptr<Pair>> make_pairs(const BridgeOptions& options) {
  if (options.listen.empty() || options.listen.size() != options.connect.size()) {
    throw UsageError(fmt::format("{} times --listen and {} times --connect: give one --connect for each --listen",
                                 options.listen.size(), options.connect.size()));
  }
  std::vector<std::pair<Place, Place>> places;
  for (size_t i = 0; i < options.listen.size(); ++i) {
    const Place listen = parse_place("--listen", options.listen[i]);
    const Place connect = parse_place("--connect", options.connect[i]);
    if ((listen.kind == Place::Kind::rdma) == (connect.kind == Place::Kind::rdma)) {
      throw UsageError(
          fmt::format("{} -> {}: a bridge joins one of rdma with one of tcp or unix", listen.text(), connect.text()));
    }
    if (connect.kind != Place::Kind::unix_socket && connect.port == 0) {
      throw UsageError(fmt::format("--connect {}: nobody listens at port 0", connect.text()));
    }
    check_listen(listen, options.listens_anywhere);
    places.emplace_back(listen, connect);
  }
  std::vector<std::unique_ptr<Pair>> pairs;
  for (const auto& [listen, connect] : places) {
    pairs.push_back(std::make_unique<Pair>(listen, connect));
  }
  return pairs;
}

/// Thousands of connections take some descriptors each.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// All of it, from the first connection to the last.
/// Everything but the page runs on the thread that calls run(). Not thread-safe.
class Bridge : private Listening {
 public:
  explicit Bridge(const BridgeOptions& options)
      : options_(options),
        pairs_(make_pairs(options)),
        deadlines_(loop_),
        around_{loop_, deadlines_, nullptr, {}, {}, options.connect_timeout_ms * kNsPerMs},
        calls_(
            loop_, [this](int signal) { on_signal(signal); }, [this] { answer_page(); }, [this] { before_sleep(); }) {
    around_.relay.linger_ns = options.linger_ms * kNsPerMs;
    around_.stream.receive_bytes = options.receive_bytes;
    around_.stream.connect_timeout_ms = static_cast<uint32_t>(options.connect_timeout_ms);
    limits_.max_connections = options.max_connections;
    limits_.allowed = options.allowed;
    limits_.say = [this](const std::string& kind, const std::string& text) {
      if (remarks_.may_say(kind, base::now_ns())) {
        base::say(fmt::format("ringbolt bridge: {}\n", text));
      }
    };
    if (!options.stats.empty()) {
      page_.emplace(options.stats, [this] { calls_.call(); });
    }
    stream::ServiceSettings service;
    service.verbs = options.verbs;
    service.memory_budget_bytes = options.memory_bytes;
    around_.service = std::make_shared<stream::Service>(service);
    try {
      for (const auto& pair : pairs_) {
        pair->start(around_, limits_);
      }
    } catch (...) {
      end();
      throw;
    }
  }
  ~Bridge() override { end(); }

  int run() {
    for (const auto& pair : pairs_) {
      fmt::print("{} -> {}\n", pair->listen_text(), pair->connect_text());
    }
    if (page_) {
      fmt::print("statistics: {}\n", page_->text());
    }
    std::fflush(stdout);
    loop_.run();
    for (const auto& pair : pairs_) {
      fmt::print("{}\n", pair->tally().text());
    }
    // As shells tell of a program that a signal ended.
    return last_signal_ == 0 ? kOk : 128 + last_signal_;
  }

 private:
  /// Pairs that have started go before the loop that watches for them, which is made after them.
  void end() {
    page_.reset();  // it asks the rest
    pairs_.clear();
  }

  void on_signal(int signal) {
    if (is_draining_) {
      last_signal_ = signal;
      loop_.stop();
      return;
    }
    is_draining_ = true;
    for (const auto& pair : pairs_) {
      pair->stop_listening();
    }
    if (limits_.open != 0) {
      base::say(fmt::format(
          "ringbolt bridge: takes no more connections, and ends when the {} that are open have ended, in {} ms at the "
          "latest; a second signal ends it at once\n",
          limits_.open, options_.drain_ms));
      set_end(base::now_ns() + options_.drain_ms * kNsPerMs);
    }
  }

  /// The time to drain is over; or, then, that of the last words.
  void on_event() override {
    if (is_ending_) {
      loop_.stop();
      return;
    }
    is_ending_ = true;
    set_end(base::now_ns() + kEndingNs);
    for (const auto& pair : pairs_) {
      pair->stop("drained");
    }
  }

  void set_end(uint64_t at_ns) {
    deadlines_.move(*this, end_ns_, at_ns);
    end_ns_ = at_ns;
  }

  void before_sleep() {
    const uint64_t until_ns = base::now_ns() + kBuryNs;
    const bool is_all = std::ranges::all_of(pairs_, [&](const auto& pair) { return pair->bury(until_ns); });
    if (!is_all) {
      // Wakes the loop at once: else it would sleep with connections left to free.
      calls_.call();  // events first, then the rest
    }
    if (is_draining_ && limits_.open == 0) {
      loop_.stop();
    }
  }

  /// Also called when nobody has asked: see before_sleep().
  void answer_page() {
    if (page_ && page_->is_asked()) {
      page_->answer(page());
    }
  }

  std::string page() const {
    std::vector<Tally> tallies;
    for (const auto& pair : pairs_) {
      tallies.push_back(pair->tally());
    }
    return tallies_exposition(tallies, options_.memory_bytes - around_.service->budget().left(), is_draining_);
  }

  // the caller's, for as long as this
  const BridgeOptions& options_;
  std::vector<std::unique_ptr<Pair>> pairs_;  // first: sockets are made before there are threads
  Loop loop_;
  Deadlines deadlines_;
  Surroundings around_;
  Limits limits_;
  Remarks remarks_;
  Calls calls_;
  std::optional<PageThread> page_;
  uint64_t end_ns_ = 0;
  int last_signal_ = 0;
  bool is_draining_ = false;
  bool is_ending_ = false;
};

}  // namespace
}  // namespace bridge

int bridge_run(const BridgeOptions& options) {
  bridge::raise_descriptor_limit();
  bridge::Bridge whole(options);
  return whole.run();
}

}  // namespace ringbolt::tools
