#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "cases.h"
#include "flow.h"
#include "recorder.h"

namespace ringbolt::test {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

/// What ties a line of /proc/self/net/tcp, which shows all of the namespace, to this process.
std::set<std::string> own_socket_inodes() {
  std::set<std::string> inodes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the directory's own descriptor
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:[")) {
      inodes.insert(target.substr(8, target.size() - 9));
    }
  }
  return inodes;
}

/// From "0100007F:1F90": words of the address in this machine's order, the port as a number.
Address parse_address(const std::string& text, bool is_v6) {
  Address made;
  const size_t colon = text.find(':');
  const auto port = static_cast<in_port_t>(std::stoul(text.substr(colon + 1), nullptr, 16));
  std::array<uint32_t, 4> words{};
  for (size_t i = 0; i < (is_v6 ? 4U : 1U); ++i) {
    words[i] = static_cast<uint32_t>(std::stoul(text.substr(8 * i, 8), nullptr, 16));
  }
  if (is_v6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    std::memcpy(&address.sin6_addr, words.data(), sizeof words);
    if (words == std::array<uint32_t, 4>{}) {
      address.sin6_addr = in6addr_loopback;
    }
    std::memcpy(&made.storage, &address, made.length = sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = words[0] != 0 ? words[0] : htonl(INADDR_LOOPBACK);
    std::memcpy(&made.storage, &address, made.length = sizeof address);
  }
  return made;
}

/// Where this process listens by TCP, in whatever library.
std::vector<Address> listening_addresses() {
  const std::set<std::string> own = own_socket_inodes();
  std::vector<Address> found;
  for (const bool is_v6 : {false, true}) {
    std::ifstream table(is_v6 ? "/proc/self/net/tcp6" : "/proc/self/net/tcp");
    std::string line;
    std::getline(table, line);
    while (std::getline(table, line)) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
      if (state == "0A" && own.contains(inode)) {
        found.push_back(parse_address(local, is_v6));
      }
    }
  }
  return found;
}

/// A client of no good will. -1: it was not let in at all, which is fine.
int intrude(const Address& address) {
  const int client = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (::connect(client, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 &&
      errno != EINPROGRESS) {
    close(client);
    return -1;
  }
  return client;
}

/// A connection under way takes no bytes yet; one that was closed never will.
void say(int client, const std::string& bytes) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
        (errno != EAGAIN && errno != ENOTCONN)) {
      return;
    }
    sleep_s(0.001);
  }
}

std::string garbage(size_t bytes, uint64_t seed) {
  std::string text(bytes, '\0');
  fill(text.data(), bytes, {.channel = 77, .number = seed});
  return text;
}

/// Clients that hold what they opened until they go.
class Intruders {
 public:
  ~Intruders() {
    for (const int client : clients_) {
      close(client);
    }
  }
  Intruders() = default;
  Intruders(const Intruders&) = delete;
  Intruders& operator=(const Intruders&) = delete;

  void attack(const Address& address, const std::vector<std::string>& frames) {
    for (uint64_t i = 0; i < 6; ++i) {
      open(address, "");  // says nothing
      open(address, garbage(1 + 700 * i, i));
      open(address, std::string(8, '\xff') + garbage(24, i));  // a length beyond all bounds, if it is one
      if (const int client = open(address, garbage(16, i)); client >= 0) {
        shutdown(client, SHUT_WR);
      }
      if (const int client = intrude(address); client >= 0) {  // ends with a reset
        const linger now{.l_onoff = 1, .l_linger = 0};
        setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(client);
      }
    }
    for (const std::string& frame : frames) {
      open(address, frame.substr(0, frame.size() / 2));  // and the rest never comes
      open(address, frame);                              // once more what was right when it was said first
      std::string bent = frame;
      bent[bent.size() / 3] = static_cast<char>(bent[bent.size() / 3] ^ 0x10);
      open(address, bent);
    }
  }

  [[nodiscard]] size_t count() const { return clients_.size(); }

 private:
  int open(const Address& address, const std::string& bytes) {
    const int client = intrude(address);
    if (client >= 0) {
      clients_.push_back(client);
      if (!bytes.empty()) {
        say(client, bytes);
      }
    }
    return client;
  }

  std::vector<int> clients_;
};

/// Intruders stay until the good connections have been made and used.
void handshakes(Rank& rank) {
  // What a good connection says first, and the handle, whose beginning may be that of a frame.
  record_tcp(true);
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  greet(rank, links);
  record_tcp(false);
  std::vector<std::string> frames;
  for (const std::string& begun : recorded_tcp()) {
    if (!begun.empty()) {
      frames.push_back(begun);
    }
  }
  frames.emplace_back(reinterpret_cast<const char*>(links[0].own.bytes.data()), abi::kHandleBytes);
  std::vector<Link> more = listen_for(rank, peers_of(rank), 2);
  exchange_handles(rank, more);
  const std::vector<Address> addresses = listening_addresses();
  rank.step("attack the own ports");
  Intruders intruders;
  for (const Address& address : addresses) {
    intruders.attack(address, frames);
  }
  rank.barrier();
  rank.step("connect beside intruders");
  establish(rank, more, {.limit_s = 5 * rank.patience()});
  greet(rank, more);
  greet(rank, links);
  rank.barrier();
  close_links(rank, more);
  close_links(rank, links);
  if (rank.id() == 0) {
    rank.note(std::to_string(addresses.size()) + " listening TCP ports, " + std::to_string(intruders.count()) +
              " intruders, " + std::to_string(frames.size()) + " frames played back");
  }
}

/// Connects by a handle that is none. True when it got a comm.
bool try_handle(Rank& rank, const Handle& handle, int calls) {
  // Memory of its own: connect may write to a handle, and a sanitizer then sees how far.
  const auto tried = std::make_unique<Handle>(handle);
  for (int call = 0; call < calls; ++call) {
    void* comm = nullptr;
    const int code = rank.plugin().connect(rank.context(), 0, *tried, &comm);
    if (comm != nullptr) {
      promptly("closeSend", [&] { return rank.plugin().close_send(comm); });
      return true;
    }
    if (code != abi::kSuccess) {
      return false;
    }
    if (call % 8 == 7) {
      sleep_s(0.001);
    }
  }
  return false;
}

void handles(Rank& rank) {
  // One listener takes what comes by bent handles, so that the good connection afterwards is nobody else's.
  std::vector<Link> bait = listen_for(rank, peers_of(rank), 1);
  exchange_handles(rank, bait);
  rank.step("connect by handles that are none");
  size_t random_comms = 0;
  size_t bent_comms = 0;
  for (uint64_t i = 0; i < 64; ++i) {
    Handle handle;
    fill(handle.bytes.data(), handle.bytes.size(), {rank.id(), 99, i});
    random_comms += try_handle(rank, handle, 16) ? 1U : 0U;
  }
  for (uint64_t i = 0; i < 192; ++i) {
    const Link& target = bait[i % bait.size()];
    Handle handle = target.theirs;
    for (uint64_t flip = 0; flip <= i % 4; ++flip) {
      // The beginning of a handle, where most of it is, in half of the turns.
      const size_t bit = mixed(100 * i + flip) % (i % 2 == 0 ? 8 * abi::kHandleBytes : 512);
      handle.bytes[bit / 8] = static_cast<unsigned char>(handle.bytes[bit / 8] ^ (1U << bit % 8));
    }
    bent_comms += try_handle(rank, handle, 16) ? 1U : 0U;
    void* comm = nullptr;
    expect(rank.plugin().accept(target.listener, &comm), "accept where bent handles lead");
    if (comm != nullptr) {
      promptly("closeRecv", [&] { return rank.plugin().close_recv(comm); });
    }
  }
  if (random_comms > 0) {
    throw Failure(std::to_string(random_comms) + " of 64 random handles gave a connection");
  }
  rank.barrier();
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  greet(rank, links);
  rank.barrier();
  close_links(rank, links);
  close_links(rank, bait);
  if (rank.id() == 0) {
    rank.note("rank 0: " + std::to_string(bent_comms) + " of 192 bent handles gave a connection");
  }
}

/// Returns the code that this end got within the time, or 0.
int send_or_receive(Rank& rank, void* comm, unsigned char* buffer, size_t bytes, void* region) {
  void* request = nullptr;
  const uint64_t begin = now_ns();
  bool is_over = false;
  while (!is_over && seconds_since(begin) < 10) {
    int code = abi::kSuccess;
    if (request == nullptr) {
      void* data = buffer;
      int tag = 0;
      code = rank.id() == 0 ? rank.plugin().isend(comm, data, bytes, tag, region, &request)
                            : rank.plugin().irecv(comm, 1, &data, &bytes, &tag, &region, &request);
    } else {
      int done = 0;
      std::array<int, abi::kMostSizes> sizes{};
      code = rank.plugin().test(request, &done, sizes.data());
      is_over = done == 1;
    }
    if (code != abi::kSuccess) {
      return code;
    }
    yield_now();
  }
  return abi::kSuccess;
}

/// Each with fresh comms: an error ends one for good.
void mismatch(Rank& rank) {
  if (rank.id() > 1) {
    return;
  }
  constexpr std::array<std::pair<size_t, size_t>, 4> kSentPosted = {
      std::pair<size_t, size_t>{4096, 1024}, {1U << 20U, 65536}, {129, 128}, {1, 0}};
  for (const auto& [sent, posted] : kSentPosted) {
    std::vector<Link> links = open_links(rank, {1 - rank.id()}, 1);
    void* const comm = rank.id() == 0 ? links[0].send : links[0].receive;
    Buffer buffer(1U << 20U);
    fill_canary(buffer.data(), buffer.bytes());
    const size_t bytes = rank.id() == 0 ? sent : posted;
    void* region = nullptr;
    expect(rank.plugin().reg_mr(comm, buffer.data(), buffer.bytes(), abi::kHostMemory, &region), "regMr");
    rank.barrier();
    rank.step("send more than is received");
    int code = 0;
    rank.progress().run([&] { code = send_or_receive(rank, comm, buffer.data(), bytes, region); });
    rank.post(1 - rank.id(), std::to_string(code));
    const int others = std::stoi(rank.take(1 - rank.id()));
    const std::string what = std::to_string(sent) + " bytes sent to a receive of " + std::to_string(posted);
    if (code != abi::kInvalidUsage && others != abi::kInvalidUsage) {
      throw Failure(what + ": codes " + std::to_string(code) + " and " + std::to_string(others) + ", none is 5");
    }
    for (size_t i = posted; rank.id() == 1 && i < buffer.bytes(); ++i) {
      if (buffer.data()[i] != canary_byte(i)) {
        throw Failure(what + ": byte " + std::to_string(i) + " was written to");
      }
    }
    promptly("deregMr", [&] { return rank.plugin().dereg_mr(comm, region); });
    rank.barrier();
    close_links(rank, links);
  }
}

}  // namespace

std::vector<Case> abuse_cases() {
  return {{.name = "handshakes",
           .asserts = "silence, garbage, halves and repetitions at its TCP ports harm nobody",
           .run = handshakes},
          {.name = "handles",
           .asserts = "random and bent handles give an error or nothing, and harm nobody",
           .run = handles},
          {.name = "mismatch",
           .asserts = "a message longer than its receive: code 5 at one end, nothing overwritten",
           .run = mismatch}};
}

}  // namespace ringbolt::test
