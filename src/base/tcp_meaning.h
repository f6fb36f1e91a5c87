#pragma once

#include <array>
#include <string>
#include <string_view>

namespace ringbolt::base {

/// Why a connection of TCP fails with an errno, and what to do about it.
struct TcpMeaning {
  std::string_view symbol;  ///< "ECONNREFUSED": numbers differ between platforms
  std::string_view cause;
  std::string_view remedy;
};

/// Of the side channel by which ranks and peers find each other. The dictionary of all other steps:
/// verbs/errno_meaning.h.
// By symbol, since verbs/errno_meaning.cpp looks up numbers of other platforms in it.
inline constexpr std::array kTcpMeanings = {
    TcpMeaning{"ECONNREFUSED", "nobody listens at the side channel's address; RDMA is not involved",
               "start the first rank, or correct its address and port"},
    TcpMeaning{"EHOSTUNREACH", "the side channel's host is not reached; RDMA is not involved",
               "check the address; on macOS allow the program under Privacy, Local Network"},
    TcpMeaning{"ENETUNREACH", "no route leads to the side channel's host; RDMA is not involved",
               "check the address and this machine's routes"},
    TcpMeaning{"EADDRNOTAVAIL", "this machine does not have the side channel's address",
               "correct the address; RDMA is not involved"},
    TcpMeaning{"ETIMEDOUT", "the side channel's host does not answer; RDMA is not involved",
               "check the address and its firewall"},
    TcpMeaning{"ENOENT", "a number left from an earlier call: the peer has closed the side channel",
               "look why the peer ended"},
};

/// "<cause>: <remedy>" of an errno of this platform; empty if nothing is known. Pure. Thread-safe.
std::string tcp_advice(int error);

}  // namespace ringbolt::base
