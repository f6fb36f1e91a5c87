#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/sockets.h"
#include "membership/announcement.h"

namespace ringbolt::membership {

/// This machine's addresses that others may reach: of interfaces that are up, neither loopback nor of a single link. At
/// most kMostAddresses. Thread-safe. As they are at this moment; empty where the kernel can't be asked.
std::vector<Ip> own_addresses();
/// The interfaces that have one of these addresses, each once, loopback excepted. Thread-safe.
std::vector<std::string> interfaces_with(const std::vector<Ip>& addresses);
/// A number that processes have in common that share one kernel and one network namespace. Thread-safe. Reads files
/// of /proc; the same as long as the machine and the namespace live.
uint64_t machine_number();

/// Where to try to call `contact`: at its loopback address if it is on `own_machine`, else at each of its addresses.
/// `contact` comes from a peer: nothing of it but addresses and the port is used.
std::vector<bootstrap::Address> ways_to(const Contact& contact, uint64_t own_machine);

}  // namespace ringbolt::membership
