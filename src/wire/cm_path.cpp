#include "wire/cm_path.h"

#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct PathAt {
  static constexpr size_t local_lid = 0, remote_lid = 2, local_gid = 4, remote_gid = 20, label_and_rate = 36,
                          traffic_class = 40, hop_limit = 41, level = 42, timeout = 43, end = 44;
};
static_assert(PathAt::end == kCmPathBytes);

constexpr uint32_t kLabelShift = 12;  // 20 bits of flow label, 6 reserved, 6 of rate
constexpr uint32_t kRateMask = 0x3f;
constexpr uint32_t kSubnetLocal = 0x08;

}  // namespace

CmPath parse_cm_path(std::span<const std::byte, kCmPathBytes> in) {
  const uint32_t label_and_rate = get_be<uint32_t>(in, PathAt::label_and_rate);
  const uint32_t level = get_be<uint8_t>(in, PathAt::level);
  return {.local_lid = get_be<uint16_t>(in, PathAt::local_lid),
          .remote_lid = get_be<uint16_t>(in, PathAt::remote_lid),
          .local_gid = get_bytes<uint8_t, 16>(in, PathAt::local_gid),
          .remote_gid = get_bytes<uint8_t, 16>(in, PathAt::remote_gid),
          .flow_label = label_and_rate >> kLabelShift,
          .packet_rate = static_cast<uint8_t>(label_and_rate & kRateMask),
          .traffic_class = get_be<uint8_t>(in, PathAt::traffic_class),
          .hop_limit = get_be<uint8_t>(in, PathAt::hop_limit),
          .service_level = static_cast<uint8_t>(level >> 4),
          .is_subnet_local = (level & kSubnetLocal) != 0,
          .ack_timeout = static_cast<uint8_t>(get_be<uint8_t>(in, PathAt::timeout) >> 3)};
}

void emit(const CmPath& path, std::span<std::byte, kCmPathBytes> out) {
  put_be(out, PathAt::local_lid, path.local_lid);
  put_be(out, PathAt::remote_lid, path.remote_lid);
  put_bytes(out, PathAt::local_gid, path.local_gid);
  put_bytes(out, PathAt::remote_gid, path.remote_gid);
  put_be<uint32_t>(out, PathAt::label_and_rate, path.flow_label << kLabelShift | (path.packet_rate & kRateMask));
  put_be(out, PathAt::traffic_class, path.traffic_class);
  put_be(out, PathAt::hop_limit, path.hop_limit);
  put_be(out, PathAt::level,
         static_cast<uint8_t>((path.service_level & 0x0fU) << 4 | (path.is_subnet_local ? kSubnetLocal : 0U)));
  put_be(out, PathAt::timeout, static_cast<uint8_t>((path.ack_timeout & 0x1fU) << 3));
}

}  // namespace ringbolt::wire
