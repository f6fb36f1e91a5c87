// A key-value server: PING, SET, GET and QUIT of RESP, over RDMA streams as Valkey speaks them, over TCP,
// or both at once. An example of an event loop with ringbolt/byte_stream.h, not a database. docs/stream.md explains it.
//
//   server [--bind ADDRESS] [--rdma PORT] [--tcp PORT] [--spin US]      a port of 0: a free one, which is printed
//
//   g++ -std=c++20 -O2 server.cpp $(pkg-config --cflags --libs ringbolt-stream) -o server

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <ringbolt/byte_stream.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kNow = 0;                     // a time limit: does not wait
constexpr size_t kMostBytes = size_t{1} << 30U;  // of one value

/// What carries the bytes of one client. Nothing blocks.
class Link {
 public:
  virtual ~Link() = default;
  virtual int fd() = 0;  // readable: there may be something; writable, or readable: there may be room again
  /// Nothing: none are there; 0: the end. Throws when the connection has failed.
  virtual std::optional<size_t> read(char* data, size_t size) = 0;
  /// How much found room. Throws likewise.
  virtual size_t write(std::string_view data) = 0;
};

class RdmaLink : public Link {
 public:
  explicit RdmaLink(ringbolt::ByteStream stream) : stream_(std::move(stream)) {}
  ~RdmaLink() override { ringbolt_stream_close(stream_.get(), 100); }  // the last answer is to arrive
  int fd() override { return stream_.fd(); }
  std::optional<size_t> read(char* data, size_t size) override { return stream_.read(data, size, kNow); }
  // After a short write the descriptor is readable when there is room again.
  size_t write(std::string_view data) override { return stream_.write(data.data(), data.size(), kNow); }

 private:
  ringbolt::ByteStream stream_;
};

class TcpLink : public Link {
 public:
  explicit TcpLink(int fd) : fd_(fd) {
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~TcpLink() override { close(fd_); }
  int fd() override { return fd_; }
  std::optional<size_t> read(char* data, size_t size) override { return counted(recv(fd_, data, size, MSG_DONTWAIT)); }
  size_t write(std::string_view data) override {
    return counted(send(fd_, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL)).value_or(0);
  }

 private:
  static std::optional<size_t> counted(ssize_t n) {
    if (n >= 0) {
      return static_cast<size_t>(n);
    }
    if (errno == EAGAIN || errno == EINTR) {
      return std::nullopt;
    }
    throw std::runtime_error(std::strerror(errno));
  }
  int fd_;
};

/// "*3" or "$5": the number, behind which `at` stands then. Nothing if it is not complete; throws if it is none.
std::optional<size_t> number(std::string_view text, size_t& at, char kind) {
  const size_t end = text.find("\r\n", at);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  size_t value = 0;
  const auto [rest, error] = std::from_chars(&text[at] + 1, &text[end], value);
  if (text[at] != kind || error != std::errc() || rest != &text[end] || value > kMostBytes) {
    throw std::runtime_error("not a command of RESP");
  }
  at = end + 2;
  return value;
}

/// The words of the first command. Returns its bytes, 0 if it is not complete; throws if it is none.
size_t parse(std::string_view text, std::vector<std::string_view>& words) {
  size_t at = 0;
  words.clear();
  const auto n = number(text, at, '*');
  for (size_t i = 0; n && i < *n; ++i) {
    const auto length = number(text, at, '$');
    if (!length || text.size() - at < *length + 2) {
      return 0;
    }
    words.push_back(text.substr(at, *length));
    at += *length + 2;
  }
  return at;
}

struct Client {
  std::unique_ptr<Link> link;
  std::string received = {};
  std::string reply = {};
  size_t replied = 0;
  bool quits = false;
  bool waits_for_room = false;
};

class Server {
 public:
  Server(const std::string& host, int rdma_port, int tcp_port, uint64_t spin_us)
      : spin_(spin_us), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (rdma_port >= 0) {
      service_.emplace();
      rdma_.emplace(service_->listen(host, static_cast<uint16_t>(rdma_port)));
      watch(rdma_->fd(), EPOLLIN, EPOLL_CTL_ADD);
      std::printf("rdma %u\n", unsigned{rdma_->port()});
    }
    if (tcp_port >= 0) {
      listen_tcp(host, static_cast<uint16_t>(tcp_port));
    }
    std::fflush(stdout);
  }

  void run() {
    std::vector<epoll_event> events(256);
    while (true) {
      const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), poll() ? 0 : -1);
      for (int i = 0; i < n; ++i) {
        handle(events[static_cast<size_t>(i)].data.fd);
      }
    }
  }

 private:
  void watch(int fd, uint32_t events, int operation) {
    epoll_event wanted{};
    wanted.events = events;
    wanted.data.fd = fd;
    if (epoll_ctl(epoll_, operation, fd, &wanted) != 0) {
      throw std::runtime_error(std::string("epoll_ctl: ") + std::strerror(errno));
    }
  }
  void listen_tcp(const std::string& host, uint16_t port) {
    tcp_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(tcp_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    socklen_t length = sizeof at;
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    inet_pton(AF_INET, host.empty() ? "0.0.0.0" : host.c_str(), &at.sin_addr);
    if (bind(tcp_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(tcp_, 1024) != 0) {
      throw std::runtime_error(std::string("TCP: ") + std::strerror(errno));
    }
    getsockname(tcp_, reinterpret_cast<sockaddr*>(&at), &length);
    watch(tcp_, EPOLLIN, EPOLL_CTL_ADD);
    std::printf("tcp %u\n", unsigned{ntohs(at.sin_port)});
  }

  /// Asks all clients without sleeping, as long as the last request was not long ago. Whether to go on so.
  bool poll() {
    const bool is_busy = spin_.count() != 0 && Clock::now() - busy_since_ < spin_;
    for (auto one = clients_.begin(); is_busy && one != clients_.end();) {
      handle((one++)->first);
    }
    return is_busy;
  }

  void admit(std::unique_ptr<Link> link) {
    const int fd = link->fd();
    watch(fd, EPOLLIN, EPOLL_CTL_ADD);
    clients_[fd].link = std::move(link);
  }

  void handle(int fd) {
    if (rdma_ && fd == rdma_->fd()) {
      while (auto stream = rdma_->accept(kNow)) {
        admit(std::make_unique<RdmaLink>(std::move(*stream)));
      }
    } else if (fd == tcp_) {
      for (int made = 0; (made = accept4(tcp_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        admit(std::make_unique<TcpLink>(made));
      }
    } else if (const auto found = clients_.find(fd); found != clients_.end()) {
      try {
        if (serve(found->second)) {
          return;
        }
      } catch (const std::exception& problem) {  // one connection ends, others continue
        std::fprintf(stderr, "server: %s\n", problem.what());
      }
      epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
      clients_.erase(found);
    }
  }

  /// False: the client is to go.
  bool serve(Client& client) {
    if (client.reply.empty()) {  // else it does not take its answers: no more questions
      const auto n = client.link->read(room_, sizeof room_);
      if (n && *n == 0) {
        return false;
      }
      client.received.append(room_, n.value_or(0));
      busy_since_ = spin_.count() != 0 && n ? Clock::now() : busy_since_;
    }
    size_t done = 0;
    while (!client.quits) {
      const size_t bytes = parse(std::string_view(client.received).substr(done), words_);
      if (bytes == 0) {
        break;
      }
      answer(client, words_);
      done += bytes;
    }
    client.received.erase(0, done);
    if (!client.reply.empty()) {
      client.replied += client.link->write(std::string_view(client.reply).substr(client.replied));
    }
    const bool is_left = client.replied < client.reply.size();
    if (!is_left) {
      client.reply.clear();
      client.replied = 0;
    }
    if (is_left != client.waits_for_room) {
      watch(client.link->fd(), is_left ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }
    client.waits_for_room = is_left;
    return is_left || !client.quits;
  }

  void answer(Client& client, const std::vector<std::string_view>& words) {
    std::string& reply = client.reply;
    const auto is = [&](std::string_view name, size_t n) {
      return words.size() == n && words[0].size() == name.size() &&
             !strncasecmp(words[0].data(), name.data(), name.size());
    };
    if (is("PING", 1)) {
      reply += "+PONG\r\n";
    } else if (is("SET", 3)) {
      values_.insert_or_assign(std::string(words[1]), std::string(words[2]));
      reply += "+OK\r\n";
    } else if (is("GET", 2)) {
      const auto found = values_.find(std::string(words[1]));
      const bool is_there = found != values_.end();
      reply += is_there ? "$" + std::to_string(found->second.size()) + "\r\n" : "$-1\r\n";
      reply += is_there ? found->second + "\r\n" : "";
    } else if (is("QUIT", 1)) {
      reply += "+OK\r\n";
      client.quits = true;
    } else {
      reply += "-ERR this example knows PING, SET, GET and QUIT\r\n";
    }
  }

  std::unordered_map<std::string, std::string> values_;
  std::vector<std::string_view> words_;
  std::optional<ringbolt::StreamService> service_;
  std::optional<ringbolt::StreamListener> rdma_;
  std::map<int, Client> clients_;
  std::chrono::microseconds spin_;
  Clock::time_point busy_since_;
  int epoll_, tcp_ = -1;
  char room_[65536];  // of one turn, so that nobody has to wait for long
};

}  // namespace

int main(int argc, char** argv) try {
  std::map<std::string, std::string> said{{"--bind", ""}, {"--rdma", "-1"}, {"--tcp", "-1"}, {"--spin", "0"}};
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !said.contains(argv[i])) {
      throw std::runtime_error("usage: server [--bind ADDRESS] [--rdma PORT] [--tcp PORT] [--spin US]");
    }
    said[argv[i]] = argv[i + 1];
  }
  const auto server = std::make_unique<Server>(said["--bind"], std::stoi(said["--rdma"]), std::stoi(said["--tcp"]),
                                               std::stoull(said["--spin"]));
  server->run();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "server: %s\n", problem.what());
  return 1;
}
