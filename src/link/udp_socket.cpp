#include "link/udp_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>
#include <fstream>
#include <string_view>

#include "base/error.h"

// Not in the C library's headers of Debian 12.
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

namespace ringbolt::link {
namespace {

// A receiver that is off the processor for some milliseconds must not lose what peers may send meanwhile: 64 packets
// per queue pair.
constexpr int kSocketBufferBytes = 8 << 20;

void set(int fd, int level, int option, int value, const std::string& what) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0) {
    throw base::Error(errno, fmt::format("setsockopt({})", what), "UDP socket of the RoCE link");
  }
}

/// The kernel's limit (net.core.rmem_max) holds for those who may not pass it.
/// socket(7): SO_RCVBUFFORCE needs CAP_NET_ADMIN; without it the limit is taken as it is.
void raise_buffer(int fd, int forced, int plain) {
  const int bytes = kSocketBufferBytes;
  if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) != 0) {
    setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
  }
}

void set_options(int fd, UdpFamily family) {
  set(fd, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
  if (family == UdpFamily::ipv4) {
    // Unconnected and never fragmented: the kernel numbers the segments of each call 0, 1, 2..., and the ICRC covers
    // that number.
    set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "IP_MTU_DISCOVER");
    set(fd, IPPROTO_IP, IP_PKTINFO, 1, "IP_PKTINFO");
  } else {
    set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY");
    set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, "IPV6_MTU_DISCOVER");
    set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO");
    // RoCE peers send without a checksum, which the kernel refuses over IPv6 unless told.
    set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, "UDP_NO_CHECK6_RX");
  }
  // Absent before Linux 5.0: then each packet comes by itself.
  const int on = 1;
  setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  raise_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  raise_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
}

std::string holder_of_port() {
  return is_kernel_soft_roce_loaded()
             ? "the kernel's rdma_rxe holds it: remove its devices (rdma link delete) or the module (modprobe -r "
               "rdma_rxe)"
             : "another user's program or another network program holds it (ss -lunp shows which); end it, or use "
               "another network namespace";
}

}  // namespace

base::UniqueFd open_udp_socket(UdpFamily family, uint16_t port) {
  const bool is_ipv4 = family == UdpFamily::ipv4;
  base::UniqueFd fd(socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) {
    if (errno == EAFNOSUPPORT) {
      return fd;
    }
    throw base::Error(errno, "socket", is_ipv4 ? "IPv4" : "IPv6");
  }
  set_options(fd.get(), family);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  const auto* address = is_ipv4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  if (bind(fd.get(), address, is_ipv4 ? sizeof v4 : sizeof v6) != 0) {
    if (errno == EADDRNOTAVAIL && !is_ipv4) {  // net.ipv6.conf.all.disable_ipv6
      fd.reset();
      return fd;
    }
    throw base::Error(errno, "bind", fmt::format("UDP port {} ({})", port, is_ipv4 ? "IPv4" : "IPv6"),
                      errno == EADDRINUSE ? holder_of_port() : "RoCE needs this port");
  }
  return fd;
}

std::vector<uint64_t> bound_udp_sockets(UdpFamily family, uint16_t port) {
  // "  sl  local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ref pointer drops"
  const char* path = family == UdpFamily::ipv4 ? "/proc/thread-self/net/udp" : "/proc/thread-self/net/udp6";
  const std::string wanted = fmt::format("{}:{:04X}", std::string(family == UdpFamily::ipv4 ? 8 : 32, '0'), port);
  if (family == UdpFamily::ipv6 && access(path, F_OK) != 0) {
    return {};  // a kernel without IPv6
  }
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    throw base::Error(ENOENT, "read", path, "mount /proc: the processes that share a UDP port need it");
  }
  std::vector<uint64_t> inodes;
  while (std::getline(file, line)) {
    constexpr size_t kInodeField = 9;
    size_t at = 0;
    std::string_view field;
    for (size_t i = 0; i <= kInodeField; ++i) {
      at = line.find_first_not_of(' ', at);
      const size_t end = at == std::string::npos ? at : line.find(' ', at);
      field = at == std::string::npos ? std::string_view{} : std::string_view(line).substr(at, end - at);
      at = end;
      if (i == 1 && field != wanted) {
        break;
      }
    }
    uint64_t inode = 0;
    if (field.find(':') == std::string_view::npos &&
        std::from_chars(field.data(), field.data() + field.size(), inode).ec == std::errc{} && inode != 0) {
      inodes.push_back(inode);
    }
  }
  return inodes;
}

bool withdraw_udp_socket(int socket, UdpFamily family) {
  // A socket that is closed leaves the group a moment before it leaves the list that packets are looked up in, and what
  // comes between is lost with it. A connected one leaves the group as well, and lives on.
  constexpr uint16_t kDiscardPort = 9;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(kDiscardPort);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(kDiscardPort);
  v6.sin6_addr = in6addr_loopback;
  return family == UdpFamily::ipv4 ? connect(socket, reinterpret_cast<const sockaddr*>(&v4), sizeof v4) == 0
                                   : connect(socket, reinterpret_cast<const sockaddr*>(&v6), sizeof v6) == 0;
}

void wait_for_kernel_readers() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) {
    constexpr timespec kLonger{0, 20'000'000};  // not told (old kernels, seccomp, nohz_full): longer than it takes
    nanosleep(&kLonger, nullptr);
  }
}

uint64_t inode_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

uint64_t network_namespace() {
  struct stat status {};
  return stat("/proc/thread-self/ns/net", &status) == 0 ? status.st_ino : 0;
}

bool is_kernel_soft_roce_loaded() { return access("/sys/module/rdma_rxe", F_OK) == 0; }

}  // namespace ringbolt::link
