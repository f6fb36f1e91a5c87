#include "load.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <ringbolt/byte_stream.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "micro/pinned_thread.h"

namespace ringbolt::bench {

constexpr uint64_t kLimitMs = 20'000;

namespace {

uint64_t percentile(std::vector<uint64_t>& samples, size_t per_thousand) {
  if (samples.empty()) {
    return 0;
  }
  const size_t at = std::min(samples.size() - 1, samples.size() * per_thousand / 1000);
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(at), samples.end());
  return samples[at];
}

/// One client's connection. Nothing blocks.
class Way {
 public:
  virtual ~Way() = default;
  virtual int fd() = 0;
  virtual size_t read(char* data, size_t size) = 0;
  virtual void write(const std::string& data) = 0;
};

class StreamWay : public Way {
 public:
  explicit StreamWay(ByteStream stream) : stream_(std::move(stream)) {}
  int fd() override { return stream_.fd(); }
  size_t read(char* data, size_t size) override { return stream_.read(data, size, 0).value_or(0); }
  void write(const std::string& data) override {
    if (stream_.write(data.data(), data.size(), kLimitMs) != data.size()) {
      throw std::runtime_error("a request did not fit");
    }
  }

 private:
  ByteStream stream_;
};

class TcpWay : public Way {
 public:
  explicit TcpWay(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      throw std::runtime_error("no TCP connection to the server");
    }
  }
  ~TcpWay() override { close(fd_); }
  int fd() override { return fd_; }
  size_t read(char* data, size_t size) override {
    const ssize_t some = recv(fd_, data, size, MSG_DONTWAIT);
    if (some == 0) {
      throw std::runtime_error("the server has closed a connection");
    }
    return some > 0 ? static_cast<size_t>(some) : 0;
  }
  void write(const std::string& data) override {
    for (size_t done = 0; done < data.size();) {
      const ssize_t some = send(fd_, data.data() + done, data.size() - done, MSG_NOSIGNAL);
      if (some < 0 && errno != EINTR) {
        throw std::runtime_error("the server has closed a connection");
      }
      done += some > 0 ? static_cast<size_t>(some) : 0;
    }
  }

 private:
  int fd_;
};

struct Client {
  std::unique_ptr<Way> way;
  uint64_t asked_ns = 0;
  size_t left = 0;  // bytes of the answer that have not come
};

class Clients {
 public:
  explicit Clients(const Load& load) : load_(load), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    const std::string value(load.bytes, 'v');
    const std::string head = "$3\r\nkey\r\n";
    const std::string word = "$" + std::to_string(load.bytes) + "\r\n" + value + "\r\n";
    const std::string set = "*3\r\n$3\r\nSET\r\n" + head + word;
    question_ = load.is_get ? "*2\r\n$3\r\nGET\r\n" + head : set;
    answer_bytes_ = load.is_get ? word.size() : 5;
    if (load.is_stream) {
      service_.emplace();
    }
    for (uint32_t i = 0; i < load.clients; ++i) {
      add(i);
    }
    store(set);
  }
  ~Clients() { close(epoll_); }

  void run(uint64_t block_ns) {
    std::vector<uint64_t> samples;
    for (Client& client : all_) {
      ask(client);
    }
    const uint64_t begin = base::now_ns();
    const uint64_t warm_ns = begin + block_ns / 10;
    uint64_t now_ns = begin;
    uint64_t answered_ns = begin;
    while (now_ns < warm_ns + block_ns) {
      take([&](Client& client) {
        now_ns = base::now_ns();
        answered_ns = now_ns;
        if (now_ns >= warm_ns) {
          samples.push_back(now_ns - client.asked_ns);
        }
        ask(client);
      });
      now_ns = base::now_ns();
      if (now_ns - answered_ns > kLimitMs * 1'000'000) {
        throw std::runtime_error("no answer in time");
      }
    }
    const double rate = static_cast<double>(samples.size()) * 1e9 / static_cast<double>(block_ns);
    std::printf("p50_ns %lu p99_ns %lu count %zu per_second %.0f\n", percentile(samples, 500), percentile(samples, 990),
                samples.size(), rate);
  }

 private:
  void add(uint32_t number) {
    Client client;
    if (load_.is_stream) {
      client.way = std::make_unique<StreamWay>(service_->connect("127.0.0.1", load_.port, kLimitMs));
    } else {
      client.way = std::make_unique<TcpWay>(load_.port);
    }
    if (load_.spin_us == 0) {
      epoll_event wanted{};
      wanted.events = EPOLLIN;
      wanted.data.u32 = number;
      epoll_ctl(epoll_, EPOLL_CTL_ADD, client.way->fd(), &wanted);
    }
    all_.push_back(std::move(client));
  }
  /// The value that all clients ask for.
  void store(const std::string& set) {
    all_.front().way->write(set);
    char answer[5];
    for (size_t done = 0; done < sizeof answer;) {
      done += all_.front().way->read(answer + done, sizeof answer - done);
    }
    refuse_error(answer, sizeof answer, '+');
  }
  /// An error is longer than what is awaited: its rest would be counted as answers to the next questions.
  static void refuse_error(const char* answer, size_t length, char begin) {
    if (*answer != begin) {
      throw std::runtime_error("the server answers: " + std::string(answer, std::min(length, size_t{200})));
    }
  }
  void ask(Client& client) {
    client.asked_ns = base::now_ns();
    client.left = answer_bytes_;
    client.way->write(question_);
  }
  template <class Take>
  void look(Client& client, const Take& answered) {
    const size_t some = client.way->read(room_, std::min(sizeof room_, client.left));
    if (some > 0 && client.left == answer_bytes_) {
      refuse_error(room_, some, load_.is_get ? '$' : '+');
    }
    client.left -= some;
    if (some > 0 && client.left == 0) {
      answered(client);
    }
  }
  template <class Take>
  void take(const Take& answered) {
    if (load_.spin_us != 0) {
      for (Client& client : all_) {
        look(client, answered);
      }
      return;
    }
    epoll_event events[64];
    const int n = epoll_wait(epoll_, events, 64, 1000);
    for (int i = 0; i < n; ++i) {
      look(all_[events[i].data.u32], answered);
    }
  }

  Load load_;
  int epoll_;
  std::string question_;
  size_t answer_bytes_ = 0;
  std::optional<StreamService> service_;
  std::vector<Client> all_;
  char room_[65536];
};

}  // namespace

void put_load(const Load& load, uint64_t block_ns) {
  pin_thread(1);
  const auto clients = std::make_unique<Clients>(load);
  clients->run(block_ns);
}

}  // namespace ringbolt::bench
