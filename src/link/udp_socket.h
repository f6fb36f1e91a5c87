#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"

/// The sockets of the UDP link and what the kernel says of those that exist. All thread-safe.
namespace ringbolt::link {

enum class UdpFamily : uint8_t { ipv4, ipv6 };

/// An unconnected socket bound to `port` on all addresses of the family, sharing it with others of this user; never
/// blocks, never fragments, tells destination address and interface, takes and gives several packets in one call where
/// the kernel can. Not open when the machine lacks the family. Throws base::Error, saying who may hold the port.
base::UniqueFd open_udp_socket(UdpFamily family, uint16_t port);

/// The inode numbers of all sockets of the family that are bound to `port` on all addresses, in this network
/// namespace, unordered. Throws base::Error when /proc/net does not tell.
std::vector<uint64_t> bound_udp_sockets(UdpFamily family, uint16_t port);

/// Takes a socket of open_udp_socket() out of those that share the port, without closing it: it keeps what has come in,
/// and nothing new is chosen for it. Packets that the kernel was handing out just then may still arrive until
/// wait_for_kernel_readers() returns. False if the kernel refused.
bool withdraw_udp_socket(int socket, UdpFamily family);

/// Returns when every packet that the kernel was handing out at the call is where it belongs: some 10 ms.
void wait_for_kernel_readers();

/// The inode number of a socket, as bound_udp_sockets() lists it.
uint64_t inode_of(int descriptor);

/// What tells the network namespace of this thread from others.
uint64_t network_namespace();

/// Whether the kernel's own soft-RoCE may be what holds the port: for messages.
bool is_kernel_soft_roce_loaded();

}  // namespace ringbolt::link
