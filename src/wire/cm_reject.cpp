#include "wire/cm_reject.h"

#include "wire/cm_body.h"

namespace ringbolt::wire {
namespace {

struct RejAt {
  static constexpr size_t local_id = 0, remote_id = 4, answered = 8, info_length = 9, reason = 10, info = 12,
                          private_data = 84;
};
static_assert(RejAt::private_data + CmRej::kPrivateBytes == kCmBodyBytes);

struct MraAt {
  static constexpr size_t local_id = 0, remote_id = 4, answered = 8, service_timeout = 9, private_data = 10;
};
static_assert(MraAt::private_data + CmMra::kPrivateBytes == kCmBodyBytes);

}  // namespace

CmRej parse_cm_rej(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  return {.local_id = get_be<uint32_t>(in, RejAt::local_id),
          .remote_id = get_be<uint32_t>(in, RejAt::remote_id),
          .answered = static_cast<CmAnswered>(get_bits(in, RejAt::answered, 0, 2)),
          .info_length = get_bits(in, RejAt::info_length, 0, 7),
          .reason = get_be<uint16_t>(in, RejAt::reason),
          .info = get_bytes<std::byte, CmRej::kInfoBytes>(in, RejAt::info),
          .private_data = get_bytes<std::byte, CmRej::kPrivateBytes>(in, RejAt::private_data)};
}

void emit(const CmRej& rej, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, RejAt::local_id, rej.local_id);
  put_be(out, RejAt::remote_id, rej.remote_id);
  put_bits(out, RejAt::answered, 0, 2, static_cast<unsigned>(rej.answered));
  put_bits(out, RejAt::info_length, 0, 7, rej.info_length);
  put_be(out, RejAt::reason, rej.reason);
  put_bytes(out, RejAt::info, rej.info);
  put_bytes(out, RejAt::private_data, rej.private_data);
}

CmMra parse_cm_mra(MadIn mad) {
  const CmBodyIn in = cm_body(mad);
  return {.local_id = get_be<uint32_t>(in, MraAt::local_id),
          .remote_id = get_be<uint32_t>(in, MraAt::remote_id),
          .answered = static_cast<CmAnswered>(get_bits(in, MraAt::answered, 0, 2)),
          .service_timeout = get_bits(in, MraAt::service_timeout, 0, 5),
          .private_data = get_bytes<std::byte, CmMra::kPrivateBytes>(in, MraAt::private_data)};
}

void emit(const CmMra& mra, MadOut mad) {
  const CmBodyOut out = blank_cm_body(mad);
  put_be(out, MraAt::local_id, mra.local_id);
  put_be(out, MraAt::remote_id, mra.remote_id);
  put_bits(out, MraAt::answered, 0, 2, static_cast<unsigned>(mra.answered));
  put_bits(out, MraAt::service_timeout, 0, 5, mra.service_timeout);
  put_bytes(out, MraAt::private_data, mra.private_data);
}

}  // namespace ringbolt::wire
