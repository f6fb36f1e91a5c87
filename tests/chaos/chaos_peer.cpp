// One side of the chaos test, driven by lines on standard input; see the table in docs/interop.md.
//
//   open round= type= wait= seed= side= timeout= retry= rnr=   -> info QPN PSN RKEY ADDRESS GID
//   connect QPN PSN RKEY ADDRESS GID                      -> ready | refused ERRNO
//   go                                                    -> flowing (once enough was verified)
//   drain                                                 -> drained (nothing of ours is in flight)
//   close                                                 -> closed fds= threads= ... (everything destroyed)
//   quit / exit                                           -> ends in good order / at once, destroying nothing
//
// On its own it says `lost STATUS first=S ...` when a work request fails (STATUS is that of the first failed send, S that of
// the first failed request of any kind), `event TYPE` for asynchronous events, and
// `broken REASON` (exit code 3) when data or a call is wrong.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "endpoint.h"
#include "process_counts.h"
#include "traffic.h"

namespace ringbolt::chaos {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kEnoughVerified = 40;
constexpr int kIdlePolls = 64;
constexpr auto kFlushLimit = milliseconds(5000);

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string hex(const ibv_gid& gid) {
  std::string text;
  for (const std::uint8_t byte : gid.raw) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    text += digits.data();
  }
  return text;
}

ibv_gid gid_from(const std::string& text) {
  ibv_gid gid{};
  if (text.size() != 2 * sizeof gid.raw) throw std::runtime_error("a GID has 32 hexadecimal digits, not " + text);
  for (std::size_t at = 0; at < sizeof gid.raw; ++at)
    gid.raw[at] = static_cast<std::uint8_t>(std::stoul(text.substr(2 * at, 2), nullptr, 16));
  return gid;
}

/// Reads lines from standard input without blocking.
class Commands {
 public:
  Commands() { ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK); }

  /// The next whole line, if one has come. The driver's end of the pipe closing ends the process.
  std::optional<std::string> next() {
    if (const auto line = cut()) return line;
    std::array<char, 1024> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count == 0) _exit(0);
    if (count > 0) pending_.append(bytes.data(), static_cast<std::size_t>(count));
    return cut();
  }

 private:
  std::optional<std::string> cut() {
    const std::size_t end = pending_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return line;
  }

  std::string pending_;
};

/// The state machine behind the commands. Not thread-safe.
class Peer {
 public:
  Peer(ibv_context* context, int gid_index) : context_(context), gid_index_(gid_index) {
    ::fcntl(context_->async_fd, F_SETFL, ::fcntl(context_->async_fd, F_GETFL) | O_NONBLOCK);
  }

  /// Serves commands and traffic until `quit`.
  void serve() {
    while (!is_over_) {
      const std::optional<std::string> line = commands_.next();
      if (line) obey(*line);
      report_events();
      if (traffic_ && is_running_) {
        advance();
      } else if (!line) {
        sleep_until_something_happens(-1);
      }
    }
  }

 private:
  void obey(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "open") {
      open(words);
    } else if (verb == "connect") {
      connect(words);
    } else if (verb == "go") {
      is_running_ = true;
    } else if (verb == "drain") {
      if (traffic_) traffic_->drain();
      is_draining_ = true;
    } else if (verb == "close") {
      close();
    } else if (verb == "quit") {
      destroy();
      is_over_ = true;
    } else if (verb == "exit") {
      _exit(0);
    } else {
      die("unknown command: " + line);
    }
  }

  void open(std::istringstream& words) {
    std::map<std::string, std::string> fields;
    for (std::string word; words >> word;) fields[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    RoundSettings settings;
    settings.round = static_cast<std::uint32_t>(std::stoul(fields.at("round")));
    settings.type = fields.at("type") == "rc" ? IBV_QPT_RC : fields.at("type") == "uc" ? IBV_QPT_UC : IBV_QPT_UD;
    settings.sleeps_on_events = fields.at("wait") == "event";
    settings.seed = std::stoull(fields.at("seed"));
    settings.side = static_cast<std::uint32_t>(std::stoul(fields.at("side")));
    settings.timeout = static_cast<std::uint8_t>(std::stoul(fields.at("timeout")));
    settings.retry_count = static_cast<std::uint8_t>(std::stoul(fields.at("retry")));
    settings.rnr_retry = static_cast<std::uint8_t>(std::stoul(fields.at("rnr")));
    endpoint_.emplace(context_, gid_index_, settings);
    const PeerInfo info = endpoint_->info();
    std::ostringstream reply;
    reply << "info " << info.qp_num << ' ' << info.psn << ' ' << info.rkey << ' ' << info.address << ' ' << hex(info.gid);
    say(reply.str());
  }

  void connect(std::istringstream& words) {
    PeerInfo peer;
    std::string gid;
    words >> peer.qp_num >> peer.psn >> peer.rkey >> peer.address >> gid;
    peer.gid = gid_from(gid);
    if (const int error = endpoint_->connect(peer); error != 0) {
      say("refused " + std::to_string(error));
      return;
    }
    traffic_.emplace(*endpoint_, peer);
    say("ready");
  }

  /// One step of traffic; where there is nothing to do, yields or sleeps as the round wants it.
  void advance() {
    traffic_->post();
    const int handled = traffic_->poll();
    idle_polls_ = handled > 0 ? 0 : idle_polls_ + 1;
    report_progress();
    if (idle_polls_ > kIdlePolls && endpoint_->settings().sleeps_on_events) {
      if (ibv_req_notify_cq(endpoint_->cq(), 0) != 0) die("ibv_req_notify_cq failed");
      // What came before arming raises no event: look once more before sleeping.
      if (traffic_->poll() == 0) sleep_until_something_happens(1000);
    }
  }

  void report_progress() {
    if (!has_flowed_ && traffic_->counts().verified >= kEnoughVerified) {
      has_flowed_ = true;
      say("flowing");
    }
    if (!has_lost_ && traffic_->first_error() != IBV_WC_SUCCESS) {
      has_lost_ = true;
      collect_flushed();
    }
    if (is_draining_ && !has_lost_ && traffic_->is_idle()) {
      is_draining_ = false;
      say(counted("drained"));
    }
  }

  /// After the first error every other request must come back flushed, and the queue pair must be in the error state.
  void collect_flushed() {
    const auto deadline = steady_clock::now() + kFlushLimit;
    while (!traffic_->is_idle() && steady_clock::now() < deadline) traffic_->poll();
    if (!traffic_->is_idle()) die("work requests are missing after the first error; status " + status_text());
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    if (ibv_query_qp(endpoint_->qp(), &attr, IBV_QP_STATE, &init) != 0) die("ibv_query_qp failed");
    if (attr.qp_state != IBV_QPS_ERR) die("the queue pair is in state " + std::to_string(attr.qp_state) + " after " + status_text());
    say(counted("lost " + std::to_string(traffic_->first_send_error()) + " first=" + std::to_string(traffic_->first_error())));
  }

  std::string status_text() const { return ibv_wc_status_str(traffic_->first_error()); }

  std::string counted(const std::string& head) const {
    const TrafficCounts& counts = traffic_->counts();
    std::ostringstream text;
    text << head << " posted=" << counts.posted << " completed=" << counts.completed << " verified=" << counts.verified
         << " received=" << counts.received << " flushed=" << counts.flushed;
    return text.str();
  }

  void sleep_until_something_happens(int limit_ms) {
    std::array<pollfd, 3> watched{{{STDIN_FILENO, POLLIN, 0}, {context_->async_fd, POLLIN, 0}, {-1, POLLIN, 0}}};
    if (endpoint_) watched[2].fd = endpoint_->channel()->fd;
    ::poll(watched.data(), watched.size(), limit_ms);
    if ((watched[2].revents & POLLIN) == 0) return;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(endpoint_->channel(), &cq, &context) != 0) die("ibv_get_cq_event failed after POLLIN");
    ibv_ack_cq_events(cq, 1);
  }

  void report_events() {
    pollfd watched{context_->async_fd, POLLIN, 0};
    if (::poll(&watched, 1, 0) <= 0) return;
    ibv_async_event event{};
    while (ibv_get_async_event(context_, &event) == 0) {
      say("event " + std::to_string(event.event_type));
      ibv_ack_async_event(&event);
    }
  }

  void destroy() {
    traffic_.reset();
    endpoint_.reset();
    is_running_ = is_draining_ = has_flowed_ = has_lost_ = false;
    idle_polls_ = 0;
  }

  void close() {
    destroy();
    const ProcessCounts counts = count_settled_process();
    std::ostringstream reply;
    reply << "closed fds=" << counts.fds << " threads=" << counts.threads << " shared_maps=" << counts.shared_maps
          << " maps=" << counts.maps << " rss_kib=" << counts.rss_kib;
    say(reply.str());
  }

  ibv_context* context_;
  int gid_index_;
  Commands commands_;
  std::optional<Endpoint> endpoint_;
  std::optional<Traffic> traffic_;
  bool is_over_ = false;
  bool is_running_ = false;
  bool is_draining_ = false;
  bool has_flowed_ = false;
  bool has_lost_ = false;
  int idle_polls_ = 0;
};

ibv_context* open_device(const std::string& name) {
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_context* context = nullptr;
  for (ibv_device** at = list; at != nullptr && *at != nullptr && context == nullptr; ++at) {
    if (name == ibv_get_device_name(*at)) context = ibv_open_device(*at);
  }
  if (list != nullptr) ibv_free_device_list(list);
  if (context == nullptr) throw std::runtime_error("cannot open device " + name + ": " + std::strerror(errno));
  return context;
}

}  // namespace
}  // namespace ringbolt::chaos

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: chaos_peer DEVICE GID_INDEX\n");
    return 2;
  }
  try {
    ibv_context* context = ringbolt::chaos::open_device(argv[1]);
    ringbolt::chaos::say("hello " + std::to_string(::getpid()));
    ringbolt::chaos::Peer(context, std::atoi(argv[2])).serve();
    return ibv_close_device(context) == 0 ? 0 : 3;
  } catch (const std::exception& error) {
    ringbolt::chaos::die(error.what());
  }
}
