#include "wire/cm_private.h"

#include <algorithm>
#include <cerrno>

#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct IpAt {
  static constexpr size_t version = 0, ip_version = 1, source_port = 2, source = 4, destination = 20, end = 36;
};
static_assert(IpAt::end == kCmIpHeaderBytes);
constexpr size_t kIpv4At = 12;  // an IPv4 address lies at the end of its 16 bytes, behind zeros

Address as_gid(Address address, unsigned ip_version) {
  return ip_version == 4 ? ipv4_address(address[12], address[13], address[14], address[15]) : address;
}

Address as_written(const Address& gid, bool is_v4) {
  Address written = gid;
  if (is_v4) {
    std::fill_n(written.begin(), kIpv4At, uint8_t{0});
  }
  return written;
}

}  // namespace

base::Result<CmIpHeader> parse_cm_ip_header(std::span<const std::byte, kCmIpHeaderBytes> in) {
  const unsigned ip_version = get_be<uint8_t>(in, IpAt::ip_version) >> 4U;
  if (get_be<uint8_t>(in, IpAt::version) != 0 || (ip_version != 4 && ip_version != 6)) {
    return base::fail(EPROTONOSUPPORT);
  }
  return CmIpHeader{.source_port = get_be<uint16_t>(in, IpAt::source_port),
                    .source = as_gid(get_bytes<uint8_t, 16>(in, IpAt::source), ip_version),
                    .destination = as_gid(get_bytes<uint8_t, 16>(in, IpAt::destination), ip_version)};
}

void emit(const CmIpHeader& header, std::span<std::byte, kCmIpHeaderBytes> out) {
  const bool is_v4 = is_ipv4(header.source) && is_ipv4(header.destination);
  put_be(out, IpAt::version, uint8_t{0});
  put_be(out, IpAt::ip_version, static_cast<uint8_t>(is_v4 ? 0x40 : 0x60));
  put_be(out, IpAt::source_port, header.source_port);
  put_bytes(out, IpAt::source, as_written(header.source, is_v4));
  put_bytes(out, IpAt::destination, as_written(header.destination, is_v4));
}

}  // namespace ringbolt::wire
