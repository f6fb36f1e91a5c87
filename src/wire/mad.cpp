#include "wire/mad.h"

#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct MadAt {
  static constexpr size_t base_version = 0, management_class = 1, class_version = 2, method = 3, status = 4,
                          class_specific = 6, transaction_id = 8, attribute = 16, reserved = 18, modifier = 20,
                          end = 24;
};
static_assert(MadAt::end == kMadHeaderBytes);

}  // namespace

MadHeader parse_mad_header(MadIn mad) {
  return {.base_version = get_be<uint8_t>(mad, MadAt::base_version),
          .management_class = get_be<uint8_t>(mad, MadAt::management_class),
          .class_version = get_be<uint8_t>(mad, MadAt::class_version),
          .method = get_be<uint8_t>(mad, MadAt::method),
          .status = get_be<uint16_t>(mad, MadAt::status),
          .class_specific = get_be<uint16_t>(mad, MadAt::class_specific),
          .transaction_id = get_be<uint64_t>(mad, MadAt::transaction_id),
          .attribute = get_be<uint16_t>(mad, MadAt::attribute),
          .modifier = get_be<uint32_t>(mad, MadAt::modifier)};
}

void emit(const MadHeader& header, MadOut mad) {
  put_be(mad, MadAt::base_version, header.base_version);
  put_be(mad, MadAt::management_class, header.management_class);
  put_be(mad, MadAt::class_version, header.class_version);
  put_be(mad, MadAt::method, header.method);
  put_be(mad, MadAt::status, header.status);
  put_be(mad, MadAt::class_specific, header.class_specific);
  put_be(mad, MadAt::transaction_id, header.transaction_id);
  put_be(mad, MadAt::attribute, header.attribute);
  put_be(mad, MadAt::reserved, uint16_t{0});
  put_be(mad, MadAt::modifier, header.modifier);
}

}  // namespace ringbolt::wire
