#include "device/route.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "device/netdev.h"

namespace ringbolt::device {
namespace {

constexpr size_t kIpv4At = 12;
constexpr size_t kMostAnswerBytes = 4096;

/// rtnetlink(7): a route to one address.
struct Question {
  nlmsghdr header{};
  rtmsg route{};
  std::array<std::byte, 64> attributes{};

  explicit Question(uint8_t family) {
    header.nlmsg_len = NLMSG_LENGTH(sizeof route);
    header.nlmsg_type = RTM_GETROUTE;
    header.nlmsg_flags = NLM_F_REQUEST;
    route.rtm_family = family;
    // The entry itself: without one, IPv4 takes every address to lie behind an interface that is asked for.
    route.rtm_flags = RTM_F_FIB_MATCH;
  }

  void add(uint16_t type, const void* value, size_t bytes) {
    const rtattr attribute{static_cast<uint16_t>(RTA_LENGTH(bytes)), type};
    std::byte* const at = attributes.data() + (header.nlmsg_len - NLMSG_LENGTH(sizeof route));
    std::memcpy(at, &attribute, sizeof attribute);
    std::memcpy(at + RTA_LENGTH(0), value, bytes);
    header.nlmsg_len += static_cast<uint32_t>(RTA_ALIGN(RTA_LENGTH(bytes)));
  }
};
static_assert(offsetof(Question, attributes) == NLMSG_LENGTH(sizeof(rtmsg)));

bool means_no_route(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EACCES || error == EINVAL ||
         error == ENODEV;
}

}  // namespace

bool has_route(const ibv_gid& gid, uint32_t netdev_index) {
  Question question(is_ipv4(gid) ? AF_INET : AF_INET6);
  const size_t skipped = is_ipv4(gid) ? kIpv4At : 0;
  question.route.rtm_dst_len = static_cast<uint8_t>(8 * (sizeof gid.raw - skipped));
  question.add(RTA_DST, gid.raw + skipped, sizeof gid.raw - skipped);
  question.add(RTA_OIF, &netdev_index, sizeof netdev_index);
  const base::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  alignas(nlmsghdr) std::array<std::byte, kMostAnswerBytes> answer;
  if (!socket.is_open() || ::send(socket.get(), &question, question.header.nlmsg_len, 0) < 0) {
    return true;
  }
  const ssize_t length = ::recv(socket.get(), answer.data(), answer.size(), 0);
  nlmsghdr header{};
  if (length < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg)))) {
    return true;
  }
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr refusal{};
    std::memcpy(&refusal, answer.data() + NLMSG_HDRLEN, sizeof refusal.error);
    return !means_no_route(-refusal.error);
  }
  rtmsg route{};
  std::memcpy(&route, answer.data() + NLMSG_HDRLEN, sizeof route);
  return route.rtm_type == RTN_UNICAST || route.rtm_type == RTN_LOCAL;
}

}  // namespace ringbolt::device
