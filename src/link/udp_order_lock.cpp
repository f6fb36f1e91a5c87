#include "link/udp_order_lock.h"

#include <fmt/format.h>

namespace ringbolt::link {

UdpOrderLock::UdpOrderLock(int directory_fd, uint64_t network_namespace, uint64_t patience_ms)
    : file_(directory_fd, fmt::format("udp-{}.order", network_namespace), patience_ms) {}

std::optional<UdpOrderFile> UdpOrderLock::read() const {
  const std::optional<std::string> text = file_.read();
  return !text ? std::nullopt : text->empty() ? UdpOrderFile{} : UdpOrderFile::parse(*text);
}

int UdpOrderLock::write(const UdpOrderFile& order) const {
  const bool is_empty = order.families[0].members().empty() && order.families[1].members().empty();
  return is_empty ? file_.remove() : file_.write(order.emit());
}

}  // namespace ringbolt::link
